"""Events of S3 on objects and their ACLs, in both forms, and what makes an ACL another one."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus

from tests.support.servers.clients import BUCKET
from tests.support.servers.world import StubBucket, canned


def event_bridge(key: str, bucket: str = BUCKET, *, kind: str = "Object ACL Updated", version: str = "") -> str:
    """An event in EventBridge's form, whose key is as it is (S3 User Guide, ev-events)."""
    created = {} if kind == "Object ACL Updated" else {"size": 1, "sequencer": "00AF"}
    return json.dumps(
        {
            "version": "0",
            "source": "aws.s3",
            "detail-type": kind,
            "time": "2027-03-01T08:00:00Z",
            "detail": {
                "version": "0",
                "event-version": "1",
                "bucket": {"name": bucket},
                "object": {"key": key, "etag": "e", "version-id": version, **created},
            },
        }
    )


def notification(*keys: str, bucket: str = BUCKET, event: str = "ObjectAcl:Put", **more: Any) -> str:
    """A notification in S3's own form, whose keys are form-urlencoded. more: fields of each of its objects."""
    head = {"eventVersion": "2.3", "eventSource": "aws:s3", "eventTime": "2027-03-01T08:00:00.000Z", "eventName": event}
    objects = [{"key": quote_plus(key), "eTag": "e", "size": 1, **more} for key in keys]
    return json.dumps({"Records": [{**head, "s3": {"bucket": {"name": bucket}, "object": one}} for one in objects]})


def by_topic(body: str) -> str:
    """The same notification by way of an SNS topic."""
    return json.dumps({"Type": "Notification", "Message": body})


def expose(bucket: StubBucket, key: str) -> None:
    """Change the ACL, which changes nothing that is listed."""
    item = bucket.objects.versions(key)[0]
    item.grants = canned("public-read", item.owner)
