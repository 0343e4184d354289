"""S3 tells of objects on the deployed notification queue: straight, through a topic, through EventBridge's rule."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus

import pytest

from auditor.hashing.queue.message import HashTask
from deploy.options import ROOT
from tests.system.e2e.system import Make, System, expected, told

NEW = {"new/object 1+%.bin": b"new", "caf\u00e9/%2B": b"coffee", "empty": b""}
EVENTS = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]


def straight(system: System, bucket: str) -> None:
    queue = system.deployment.outputs()["NotificationQueueArn"]
    told_on(system, bucket, {"QueueConfigurations": [{"QueueArn": queue, "Events": EVENTS}]})


def through_a_topic(system: System, bucket: str) -> None:
    sns = system.deployment.client("sns")
    topic = sns.create_topic(Name=bucket)["TopicArn"]
    queue = system.deployment.outputs()["NotificationQueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue)
    told_on(system, bucket, {"TopicConfigurations": [{"TopicArn": topic, "Events": EVENTS}]})


def told_on(system: System, bucket: str, configuration: dict[str, Any]) -> None:
    s3 = system.deployment.client("s3")
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=configuration)


def sample(name: str) -> Any:
    """The body of the one message in a sample event."""
    (record,) = json.loads((ROOT / "events" / f"{name}.json").read_bytes())["Records"]
    return json.loads(record["body"])


def notification(bucket: str, task: HashTask, event: str = "ObjectCreated:Put") -> str:
    """What S3 sends, all its fields included."""
    body = sample("s3-notification")
    (record,) = body["Records"]
    entry = {"key": quote_plus(task.key), "sequencer": record["s3"]["object"]["sequencer"]}
    if event.startswith("ObjectCreated:"):
        entry |= {"size": task.size, "eTag": task.etag}
        if task.version_id:
            entry["versionId"] = task.version_id
    record["eventName"] = event
    record["s3"] |= {"bucket": record["s3"]["bucket"] | {"name": bucket}, "object": entry}
    return json.dumps(body)


def publish(system: System, bucket: str, tasks: list[HashTask], kind: str = "Object Created", **more: str) -> None:
    """What S3 gives EventBridge, all its fields included; the deployed rule decides about it."""
    for task in tasks:
        entry = {"key": task.key, "size": task.size, "etag": task.etag, "sequencer": "0055AED6DCD90281E5"}
        put_event(system, bucket, entry, kind, {}, **more)


def publish_deletion(system: System, bucket: str, key: str) -> None:
    """The same of an object without a version that was deleted, after all that publish() tells of."""
    entry = {"key": key, "sequencer": "0055AED6DCD90281E6"}
    more = {"reason": "DeleteObject", "deletion-type": "Permanently Deleted"}
    put_event(system, bucket, entry, "Object Deleted", more)


def put_event(
    system: System, bucket: str, entry: dict[str, Any], kind: str, details: dict[str, str], **more: str
) -> None:
    body = sample("s3-eventbridge")["detail"] | {"bucket": {"name": bucket}, "object": entry} | details
    event = {"Source": "aws.s3", "DetailType": kind, "Detail": json.dumps(body), **more}
    assert system.deployment.client("events").put_events(Entries=[event])["FailedEntryCount"] == 0


@pytest.mark.parametrize("tell", [straight, through_a_topic])
def test_new_objects_are_hashed_because_s3_tells_of_them(
    make: Make, bucket: str, tell: Callable[[System, str], None]
) -> None:
    system = make()
    tell(system, bucket)
    assert system.waiting("NotificationQueueUrl") == 1
    system.poller.drain()
    (taken,) = system.local.invoked
    assert "s3:TestEvent" in taken.event["Records"][0]["body"]
    assert (told(taken.answer), system.items(bucket)) == ({"batchItemFailures": []}, [])
    system.put(bucket, NEW)
    system.poller.drain()
    assert system.digests(bucket) == expected(NEW)
    assert system.letters() == []


def test_new_objects_are_hashed_because_the_rule_passes_their_events_on(make: Make, audited: str) -> None:
    system = make()
    publish(system, audited, system.put(audited, NEW))
    assert system.waiting("NotificationQueueUrl") == len(NEW)
    system.poller.drain()
    assert system.digests(audited) == expected(NEW)
    assert system.letters() == []


def test_the_rule_passes_nothing_else_on(make: Make, audited: str, bucket: str) -> None:
    system = make()
    (task,) = system.put(audited, {"key": b"data"})
    publish(system, bucket, [task])
    publish(system, audited, [task], "Object Tags Added")
    publish_deletion(system, bucket, "key")
    publish(system, audited, [task], Source="my.app")
    assert system.waiting("NotificationQueueUrl") == 0
    publish(system, audited, [task])
    publish(system, audited, [task], "Object Restore Completed")
    publish_deletion(system, audited, "key")
    assert system.waiting("NotificationQueueUrl") == 3


def test_doubled_events_that_come_in_another_order_leave_the_newest_object_its_one_digest(
    make: Make, bucket: str
) -> None:
    system = make()
    first, second, third = (system.put(bucket, {"key": data})[0] for data in (b"first", b"second", b"third"))
    for task in (third, first, second, third, first):
        system.send("NotificationQueueUrl", notification(bucket, task))
    system.poller.drain()
    assert system.identities(bucket) == {("key", third.etag): hashlib.sha256(b"third").hexdigest()}
    (fourth,) = system.put(bucket, {"key": b"fourth"})
    for task in (fourth, third, fourth):
        system.send("NotificationQueueUrl", notification(bucket, task))
    system.poller.drain()
    assert system.identities(bucket) == {
        ("key", third.etag): hashlib.sha256(b"third").hexdigest(),
        ("key", fourth.etag): hashlib.sha256(b"fourth").hexdigest(),
    }
    assert system.letters() == []
