"""S3's events in the three shapes that reach a queue, and what is not one of them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus

import pytest

from auditor.errors import MessageError
from auditor.messages import HashMessage, HashTask, encode
from auditor.notifications import TestEvent, decode_any

ODD_KEYS = ["a b+c", "100%41", "caf\u00e9/\N{PILE OF POO}", "new\nline", "//x/../y", "=cmd()", "k" * 1024, "a%2Fb", "+"]


def record(key: str = "key", bucket: str = "bucket", event: str = "ObjectCreated:Put", **entry: Any) -> dict[str, Any]:
    holder = {"key": quote_plus(key), "size": 3, "eTag": "etag", "sequencer": "0"} | entry
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-north-1",
        "eventName": event,
        "s3": {"bucket": {"name": bucket, "arn": f"arn:aws:s3:::{bucket}"}, "object": holder},
    }


def plain(*records: dict[str, Any]) -> str:
    return json.dumps({"Records": list(records)})


def through_sns(body: str) -> str:
    return json.dumps({"Type": "Notification", "MessageId": "1", "Message": body})


def event_bridge(key: str = "key", kind: str = "Object Created", **entry: Any) -> str:
    return json.dumps(
        {
            "version": "0",
            "source": "aws.s3",
            "detail-type": kind,
            "detail": {"bucket": {"name": "bucket"}, "object": {"key": key, "size": 3, "etag": "etag"} | entry},
        }
    )


def only_task(body: str) -> HashTask:
    messages = decode_any(body)
    assert isinstance(messages, list)
    (message,) = messages
    assert (message.run, message.bucket, message.algorithms) == ("event", "bucket", ("sha256",))
    (task,) = message.tasks
    return task


@pytest.mark.parametrize("key", ODD_KEYS)
def test_key_is_unquoted_once_in_s3s_own_form_and_not_at_all_in_event_bridges(key: str) -> None:
    expected = HashTask(key, None, "etag", 3)
    assert only_task(plain(record(key))) == expected
    assert only_task(through_sns(plain(record(key)))) == expected
    assert only_task(event_bridge(key)) == expected


def test_slash_encoded_or_not_is_a_slash() -> None:
    assert (
        only_task(
            plain(
                record(key="x")
                | {"s3": {"bucket": {"name": "bucket"}, "object": {"key": "a/b%2Fc", "size": 3, "eTag": "etag"}}}
            )
        ).key
        == "a/b/c"
    )


def test_version_is_taken_where_there_is_one() -> None:
    assert only_task(plain(record(versionId="v1"))).version_id == "v1"
    assert only_task(event_bridge(**{"version-id": "v1"})).version_id == "v1"
    assert only_task(event_bridge(**{"version-id": ""})).version_id is None


def test_records_of_several_buckets_are_one_message_a_bucket() -> None:
    messages = decode_any(plain(record("a", "one"), record("b", "two"), record("c", "one")), ("md5", "sha1"))
    assert isinstance(messages, list)
    assert [(message.bucket, [task.key for task in message.tasks]) for message in messages] == [
        ("one", ["a", "c"]),
        ("two", ["b"]),
    ]
    assert {message.algorithms for message in messages} == {("md5", "sha1")}


@pytest.mark.parametrize(
    "body",
    [
        plain(record(event="ObjectRemoved:Delete", size=None, eTag=None)),
        plain(),
        event_bridge(kind="Object Deleted"),
    ],
)
def test_events_that_create_nothing_ask_for_nothing(body: str) -> None:
    assert decode_any(body) == []


@pytest.mark.parametrize("wrap", [str, through_sns])
def test_test_event_of_s3(wrap: Any) -> None:
    body = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "bucket"})
    assert decode_any(wrap(body)) == TestEvent()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("not json", "not JSON"),
        ('{"hello": 1}', "neither a message of ours nor an S3 notification"),
        ('{"Records": {}}', "neither a message of ours"),
        ('{"Records": [3]}', r"Records\[0\] is not a JSON object"),
        (plain(record() | {"eventSource": "aws:sqs"}), "eventSource is not aws:s3"),
        (plain(record() | {"s3": {}}), "s3.bucket is not a JSON object"),
        (plain(record(key="x", size="3")), "size is not a whole number"),
        (plain(record(eTag=None)), "eTag is not a string"),
        (plain(record() | {"s3": {"bucket": {"name": "bucket"}, "object": {"key": "%ff"}}}), "not valid unicode"),
        (plain(*[record()] * 101), "Records has 101 entries"),
        (json.dumps({"Type": "SubscriptionConfirmation", "Message": "x"}), "SNS envelope holds no notification"),
        (json.dumps({"Type": "Notification", "Message": "x"}), "not JSON"),
        (event_bridge().replace("aws.s3", "my.app"), "source is not aws.s3"),
        (event_bridge(size=-1), "detail.object.size is negative"),
    ],
)
def test_malformed_notification_is_refused_with_its_reason(body: str, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        decode_any(body)


def test_either_kind_is_told_apart() -> None:
    ours = HashMessage("run", "bucket", ("md5",), (HashTask("key", None, "etag", 3),))
    assert decode_any(encode(ours)) == [ours]
