"""S3's events in the three shapes that reach a queue, and what is not one of them."""

from __future__ import annotations

import json
import re
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


def test_a_form_that_has_grown_is_still_read() -> None:
    grown = record("a+b", lifecycleEventData={"transitionEventData": {}}) | {
        "eventVersion": "2.9",
        "glacierEventData": {"restoreEventData": {}},
        "userIdentity": {"principalId": "A"},
        "anything": [1, {"deep": None}],
    }
    grown["s3"] |= {"configurationId": "c", "another": {"field": True}}
    assert only_task(plain(grown)) == HashTask("a+b", None, "etag", 3)
    more: dict[str, Any] = {"deletion-type": "none", "another": [1]}
    assert only_task(event_bridge("a+b", **more)) == HashTask("a+b", None, "etag", 3)


def without(holder: dict[str, Any], *path: str) -> dict[str, Any]:
    """A copy without the field at the end of the path."""
    first, *rest = path
    return {
        name: without(value, *rest) if name == first else value
        for name, value in holder.items()
        if rest or name != first
    }


def changed(holder: dict[str, Any], value: Any, *path: str) -> dict[str, Any]:
    """A copy with another value at the end of the path."""
    first, *rest = path
    return holder | {first: changed(holder[first], value, *rest) if rest else value}


FIELDS = [
    ("eventSource",),
    ("eventName",),
    ("s3",),
    ("s3", "bucket"),
    ("s3", "bucket", "name"),
    ("s3", "object"),
    ("s3", "object", "key"),
    ("s3", "object", "size"),
    ("s3", "object", "eTag"),
]
DETAILS = [
    ("source",),
    ("detail",),
    ("detail", "bucket"),
    ("detail", "bucket", "name"),
    ("detail", "object"),
    ("detail", "object", "key"),
    ("detail", "object", "size"),
    ("detail", "object", "etag"),
]
WRONG: list[Any] = [None, True, 1.5, -1, "", [], {}, ["x"], "\ud800"]


@pytest.mark.parametrize("path", FIELDS, ids=".".join)
def test_a_record_with_a_field_missing_or_of_another_type_is_refused_by_that_fields_name(path: tuple[str, ...]) -> None:
    for body in (without(record(), *path), *(changed(record(), value, *path) for value in WRONG)):
        for form in (plain(record(), body), through_sns(plain(record(), body))):
            with pytest.raises(MessageError, match=re.escape(f"Records[1].{'.'.join(path)}")):
                decode_any(form)


@pytest.mark.parametrize("path", DETAILS, ids=".".join)
def test_an_event_with_a_field_missing_or_of_another_type_is_refused_by_that_fields_name(path: tuple[str, ...]) -> None:
    whole = json.loads(event_bridge())
    for body in (without(whole, *path), *(changed(whole, value, *path) for value in WRONG)):
        with pytest.raises(MessageError, match=re.escape(".".join(path))):
            decode_any(json.dumps(body))


@pytest.mark.parametrize("value", [True, 0, 1.5, [], ["x"], {}, "v\n", "v" * 1025])
def test_a_version_of_another_type_is_refused_and_not_taken_for_none(value: Any) -> None:
    for body in (plain(record(versionId=value)), event_bridge(**{"version-id": value})):
        with pytest.raises(MessageError, match="version"):
            decode_any(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("not json", "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("1" * 5_000, "not JSON"),
        ("null", "the body is not a JSON object"),
        ('["Records"]', "the body is not a JSON object"),
        ('{"hello": 1}', "neither a message of ours nor an S3 notification"),
        ('{"Records": {}}', "neither a message of ours"),
        ('{"Records": [3]}', r"Records\[0\] is not a JSON object"),
        ('{"Event": ["s3:TestEvent"]}', "neither a message of ours"),
        (plain(record() | {"eventSource": "aws:sqs"}), "eventSource is not aws:s3"),
        (plain(record(eTag='""')), "eTag is not a string with text"),
        (event_bridge(etag='"'), "etag is not a string with text"),
        (plain(record() | {"s3": {"bucket": {"name": "bucket"}, "object": {"key": "%ff"}}}), "not valid unicode"),
        (plain(record("k" * 1025)), "key has 1025 bytes"),
        (plain(record(bucket="../bucket")), "not a bucket's name"),
        (plain(record(size=10**30)), "size is negative or too large"),
        (plain(*[record()] * 101), "Records has 101 entries"),
        (json.dumps({"Type": "SubscriptionConfirmation", "Message": "x"}), "SNS envelope holds no notification"),
        (json.dumps({"Type": "Notification", "Message": {"Records": []}}), "SNS envelope holds no notification"),
        (json.dumps({"Type": ["Notification"], "Message": "{}"}), "SNS envelope holds no notification"),
        (json.dumps({"Type": "Notification", "Message": None}), "SNS envelope holds no notification"),
        (json.dumps({"Type": "Notification"}), "neither a message of ours"),
        (through_sns("x"), "not JSON"),
        (through_sns("[]"), "the body is not a JSON object"),
        (through_sns("{}"), "neither a message of ours"),
        (through_sns(through_sns(plain(record()))), "neither a message of ours"),
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
