"""S3's events in the three forms that reach a queue, and bodies that are none."""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import MessageError
from auditor.hashing.queue.message import HashMessage, HashTask, encode
from auditor.hashing.queue.notification import (
    Noticed,
    Notification,
    Removed,
    decode_events,
    decode_notification,
    newest,
)
from auditor.ledger.base import Event, Notice

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


def event_bridge(key: str = "key", kind: str = "Object Created", *, deletion: str | None = None, **entry: Any) -> str:
    holder = {"key": key, "size": 3, "etag": "etag"} | entry
    if deletion is not None:
        holder = {name: value for name, value in holder.items() if name != "size"}
    return json.dumps(
        {
            "version": "0",
            "source": "aws.s3",
            "detail-type": kind,
            "detail": {"version": "0", "bucket": {"name": "bucket"}, "object": holder}
            | ({} if deletion is None else {"deletion-type": deletion}),
        }
    )


def only_task(body: str) -> HashTask:
    (message,) = decode_notification(body).messages
    assert (message.run, message.bucket, message.algorithms) == ("event", "bucket", ("sha256",))
    (task,) = message.tasks
    return task


@pytest.mark.parametrize("key", ODD_KEYS)
def test_key_is_unquoted_once_in_s3s_own_form_and_not_at_all_in_event_bridges(key: str) -> None:
    expected = HashTask(key, None, "etag", 3, sequencer="0")
    assert only_task(plain(record(key))) == expected
    assert only_task(through_sns(plain(record(key)))) == expected
    assert only_task(event_bridge(key, sequencer="0")) == expected
    assert only_task(through_sns(event_bridge(key, sequencer="0"))) == expected


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
    body = plain(record("a", "one"), record("b", "two"), record("c", "one"))
    messages = decode_notification(body, ("md5", "sha1")).messages
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
        event_bridge(kind="Object Deleted", deletion="Permanently Deleted"),
        event_bridge(kind="Object Deleted", deletion="Delete Marker Created"),
    ],
)
def test_events_that_create_no_object_hash_nothing(body: str) -> None:
    assert decode_notification(body).messages == ()


@pytest.mark.parametrize("wrap", [str, through_sns])
def test_test_event_of_s3(wrap: Any) -> None:
    body = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "bucket"})
    assert decode_notification(wrap(body)) == Notification(test=True)


def test_a_form_that_has_grown_is_still_read() -> None:
    grown = record("a+b", lifecycleEventData={"transitionEventData": {}}) | {
        "eventVersion": "2.9",
        "glacierEventData": {"restoreEventData": {}},
        "userIdentity": {"principalId": "A"},
        "anything": [1, {"deep": None}],
    }
    grown["s3"] |= {"configurationId": "c", "another": {"field": True}}
    assert only_task(plain(grown)) == HashTask("a+b", None, "etag", 3, sequencer="0")
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
                decode_notification(form)


@pytest.mark.parametrize("path", DETAILS, ids=".".join)
def test_an_event_with_a_field_missing_or_of_another_type_is_refused_by_that_fields_name(path: tuple[str, ...]) -> None:
    whole = json.loads(event_bridge())
    for body in (without(whole, *path), *(changed(whole, value, *path) for value in WRONG)):
        with pytest.raises(MessageError, match=re.escape(".".join(path))):
            decode_notification(json.dumps(body))


@pytest.mark.parametrize("value", [True, 0, 1.5, [], ["x"], {}, "v\n", "v" * 1025])
def test_a_version_of_another_type_is_refused_and_not_taken_for_none(value: Any) -> None:
    for body in (plain(record(versionId=value)), event_bridge(**{"version-id": value})):
        with pytest.raises(MessageError, match="version"):
            decode_notification(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("not json", "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("1" * 5_000, "not JSON"),
        ("null", "the body is not a JSON object"),
        ('["Records"]', "the body is not a JSON object"),
        ('{"hello": 1}', "neither a message of the auditor nor an S3 notification"),
        ('{"Records": {}}', "neither a message of the auditor"),
        ('{"Records": [3]}', r"Records\[0\] is not a JSON object"),
        ('{"Event": ["s3:TestEvent"]}', "neither a message of the auditor"),
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
        (json.dumps({"Type": "Notification"}), "neither a message of the auditor"),
        (through_sns("x"), "not JSON"),
        (through_sns("[]"), "the body is not a JSON object"),
        (through_sns("{}"), "neither a message of the auditor"),
        (through_sns(through_sns(plain(record()))), "neither a message of the auditor"),
        (event_bridge().replace("aws.s3", "my.app"), "source is not aws.s3"),
        (event_bridge(size=-1), "detail.object.size is negative"),
        (plain(record() | {"eventVersion": "3.0"}), r"Records\[0\].eventVersion is not 2.x"),
        (plain(record() | {"eventVersion": "20.1"}), r"eventVersion is not 2.x"),
        (plain(record() | {"eventVersion": 2.1}), r"eventVersion is not text"),
        (event_bridge().replace('"version": "0", "bucket"', '"event-version": "2.0", "bucket"'), "is not 1.x"),
        (event_bridge().replace('"version": "0", "bucket"', '"event-version": 1, "bucket"'), "is not text"),
        (plain(record(sequencer="0x12")), r"s3.object.sequencer is not hexadecimal"),
        (plain(record(sequencer=12)), r"s3.object.sequencer is not text"),
        (event_bridge(sequencer="g"), r"detail.object.sequencer is not hexadecimal"),
        (plain(record() | {"eventTime": "yesterday"}), r"Records\[0\].eventTime is not a time"),
        (plain(record() | {"eventTime": 1}), r"Records\[0\].eventTime is not text"),
        (event_bridge().replace('{"version"', '{"time": "0000-00-00", "version"', 1), "time is not a time"),
        (event_bridge(kind="Object Deleted"), "detail.deletion-type is not a string"),
        (
            event_bridge(kind="Object Deleted", deletion="Moved"),
            "known ones are Delete Marker Created, Permanently Deleted",
        ),
        (event_bridge(kind="Object Deleted", deletion="Permanently Deleted", key=""), "detail.object.key is not"),
        (plain(record(event="ObjectRemoved:Delete", key="")), r"Records\[0\].s3.object.key is not"),
    ],
)
def test_malformed_notification_is_refused_with_its_reason(body: str, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        decode_notification(body)


def test_either_kind_is_told_apart() -> None:
    ours = HashMessage("run", "bucket", ("md5",), (HashTask("key", None, "etag", 3),))
    assert decode_notification(encode(ours)) == Notification(messages=(ours,))


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AT = "2026-01-02T03:04:05Z"


def told(body: str) -> Notification:
    return decode_notification(body, now=lambda: NOW)


def gone(key: str = "key", version_id: str | None = None, sequencer: str = "2") -> Noticed:
    return Noticed("bucket", Notice(key=key, sequencer=sequencer, deleted=True, at=AT, version_id=version_id))


def line(version_id: str | None = None, **detail: str) -> Removed:
    return Removed("bucket", Event(key="key", at=AT, what="deleted", version_id=version_id, detail=detail))


def bare(event: str, key: str = "key", **entry: Any) -> str:
    """A record as deletions are: without size and ETag."""
    made = record(event=event)
    made["s3"]["object"] = {"key": quote_plus(key)} | entry
    return plain(made)


@pytest.mark.parametrize(
    "event", [f"{prefix}ObjectCreated:{how}" for prefix in ("", "s3:") for how in ("Put", "Post", "Copy", "New")]
)
@pytest.mark.parametrize("wrap", [str, through_sns])
def test_created_object_is_a_task_and_a_notice_in_every_spelling(event: str, wrap: Callable[[str], str]) -> None:
    found = told(wrap(plain(record("a b", event=event, sequencer="00AF", versionId="v1"))))
    notice = Notice(key="a b", sequencer="00AF", deleted=False, at=AT, version_id="v1", etag="etag", size=3)
    task = HashTask("a b", "v1", "etag", 3, sequencer="00AF")
    message = HashMessage("event", "bucket", ("sha256",), (task,))
    assert found == Notification(messages=(message,), notices=(Noticed("bucket", notice),))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (bare("ObjectRemoved:Delete", sequencer="2"), gone()),
        (bare("s3:ObjectRemoved:Delete", "a b", sequencer="2"), gone("a b")),
        (bare("LifecycleExpiration:Delete", sequencer="2", versionId=None), gone()),
        (bare("ObjectRemoved:Delete", sequencer="2", versionId=""), gone()),
        (bare("ObjectRemoved:DeleteMarkerCreated", sequencer="2", versionId="marker"), gone(version_id="marker")),
        (bare("LifecycleExpiration:DeleteMarkerCreated", sequencer="2", versionId="m"), gone(version_id="m")),
        (bare("ObjectRemoved:DeleteMarkerCreated", sequencer="2", versionId="null"), gone(version_id="null")),
        (event_bridge("a+b", "Object Deleted", deletion="Permanently Deleted", sequencer="2"), gone("a+b")),
        (
            event_bridge(kind="Object Deleted", deletion="Delete Marker Created", sequencer="2", **{"version-id": "m"}),
            gone(version_id="m"),
        ),
        (bare("ObjectRemoved:Delete", sequencer="2", versionId="v1"), line("v1", sequencer="2")),
        (bare("LifecycleExpiration:Delete", sequencer="2", versionId="v1"), line("v1", sequencer="2")),
        (bare("ObjectRemoved:Delete", versionId="null", sequencer="2"), line("null", sequencer="2")),
        (
            event_bridge(kind="Object Deleted", deletion="Permanently Deleted", sequencer="2", **{"version-id": "v1"}),
            line("v1", sequencer="2"),
        ),
        (bare("ObjectRemoved:Delete"), line()),
        (bare("ObjectRemoved:DeleteMarkerCreated", versionId="m"), line("m")),
    ],
)
def test_deletion_is_of_the_key_or_a_line_of_its_history(body: str, expected: Noticed | Removed) -> None:
    for form in (body, through_sns(body)):
        wanted = (
            Notification(notices=(expected,)) if isinstance(expected, Noticed) else Notification(removals=(expected,))
        )
        assert told(form) == wanted


@pytest.mark.parametrize(
    "body",
    [
        plain(record(event="ObjectRestore:Completed", sequencer="0055AED6DCD90281E5", versionId="v1")),
        event_bridge(kind="Object Restore Completed", **{"version-id": "v1"}),
    ],
)
def test_restored_object_is_hashed_without_effect_on_the_order(body: str) -> None:
    task = HashTask("key", "v1", "etag", 3)
    assert told(body) == Notification(messages=(HashMessage("event", "bucket", ("sha256",), (task,)),))


def test_created_object_of_an_old_form_without_sequencer_is_hashed_and_not_ordered() -> None:
    old = record() | {"eventVersion": "2.0"}
    del old["s3"]["object"]["sequencer"]
    assert told(plain(old)).notices == ()
    assert only_task(plain(old)) == HashTask("key", None, "etag", 3)


@pytest.mark.parametrize(
    "event",
    [
        *("ObjectTagging:Put", "ObjectTagging:Delete", "ObjectAcl:Put", "ObjectRestore:Post", "ObjectRestore:Delete"),
        *("LifecycleTransition", "IntelligentTiering", "Replication:OperationFailedReplication"),
        *("ObjectAnnotation:Put", "SomethingNew:\u202eOf\nTomorrow" + "x" * 500),
    ],
)
def test_other_events_are_ignored_with_a_word(event: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert told(plain(record(event=event) | {"s3": None})) == Notification()
    assert told(event_bridge(kind=event)) == Notification()
    for logged in caplog.records:
        assert "ignoring" in logged.getMessage()
        assert logged.levelno == logging.INFO
        assert len(logged.getMessage()) < 200
        assert logged.getMessage().isprintable()
    assert len(caplog.records) == 2


def test_lost_object_is_a_warning_and_its_neighbours_are_hashed(caplog: pytest.LogCaptureFixture) -> None:
    lost = record("lost\n\u202e" + "x" * 500, event="s3:ReducedRedundancyLostObject")
    messages = told(plain(lost, record("kept"))).messages
    assert [task.key for message in messages for task in message.tasks] == ["kept"]
    (logged,) = caplog.records
    assert logged.levelno == logging.WARNING
    assert "lost\\n\\u202exxx" in logged.getMessage()
    assert logged.getMessage().isprintable()
    assert len(logged.getMessage()) < 250


@pytest.mark.parametrize(
    ("time", "at"),
    [
        ("2026-01-02T04:05:06.789Z", "2026-01-02T04:05:06Z"),
        ("2026-01-02T04:05:06+02:00", "2026-01-02T02:05:06Z"),
        ("2026-01-02T04:05:06", "2026-01-02T04:05:06Z"),
    ],
)
def test_time_of_the_event_is_the_notices(time: str, at: str) -> None:
    bridged = json.dumps(json.loads(event_bridge(sequencer="1")) | {"time": time})
    for body in (plain(record() | {"eventTime": time}), bridged):
        (noticed,) = told(body).notices
        assert noticed.notice.at == at


def test_several_events_of_one_key_ask_for_the_newest_object_alone_and_tell_of_all_in_order() -> None:
    events = [
        record(eTag="first", sequencer="0055AED6DCD90281E4"),
        record(eTag="second", sequencer="0055AED6DCD90281E5"),
        record(eTag="third", sequencer="0055aed6dcd90281f"),
        record("other", eTag="other", sequencer="0"),
        record(bucket="another", eTag="first", sequencer="1"),
        record(event="ObjectRemoved:Delete", sequencer="0055AED6DCD90281E6"),
    ]
    for seed in range(20):
        shuffled = events.copy()
        random.Random(seed).shuffle(shuffled)
        found = told(plain(*shuffled))
        assert {(m.bucket, t.key, t.etag) for m in found.messages for t in m.tasks} == {
            ("bucket", "key", "third"),
            ("bucket", "other", "other"),
            ("another", "key", "first"),
        }
        of_key = [one.notice for one in found.notices if (one.bucket, one.notice.key) == ("bucket", "key")]
        assert [(one.etag, one.deleted) for one in of_key] == [
            ("first", False),
            ("second", False),
            (None, True),
            ("third", False),
        ]
        assert found.superseded == 2


TASKS = [
    HashTask("a", None, "1", 1, sequencer="10"),
    HashTask("a", None, "2", 1, sequencer="2"),  # newer: padded, it is 20
    HashTask("a", "null", "3", 1, sequencer="1F"),
    HashTask("a", "v1", "4", 1, sequencer="01"),
    HashTask("a", "v2", "5", 1, sequencer="02"),
    HashTask("a", "v2", "5", 1, sequencer="02"),
    HashTask("a", None, "6", 1),
    HashTask("a", None, "6", 1),
    HashTask("b", "null", "7", 1, sequencer="a0"),
    HashTask("b", None, "8", 1, sequencer="A1"),
]


@given(st.permutations(TASKS))
def test_newest_of_a_place_stays_whatever_the_order(tasks: list[HashTask]) -> None:
    assert [(task.key, task.etag) for task in newest(tasks)] == [
        ("a", "6"),
        ("a", "4"),
        ("a", "5"),
        ("a", "2"),
        ("b", "8"),
    ]


unversioned = st.builds(
    HashTask,
    key=st.sampled_from("ab"),
    version_id=st.sampled_from([None, "null"]),
    etag=st.sampled_from("123"),
    size=st.just(1),
    sequencer=st.text("01aF", min_size=1, max_size=4),
)


@given(st.lists(unversioned, max_size=12))
def test_one_unversioned_object_a_key_stays_and_none_is_newer(tasks: list[HashTask]) -> None:
    def number(task: HashTask) -> int:
        return int(task.sequencer.ljust(4, "0"), 16)

    kept = newest(tasks)
    assert [task.key for task in kept] == sorted({task.key for task in tasks})
    for task in kept:
        assert number(task) == max(number(other) for other in tasks if other.key == task.key)
        assert task in tasks


@pytest.mark.parametrize("body", [plain(record(event="ObjectAcl:Put")), event_bridge(kind="Object ACL Updated")])
def test_events_on_acls_are_for_those_who_ask(body: str) -> None:
    assert told(body) == Notification()
    assert [(one.kind, one.bucket, one.key) for one in decode_events(body)] == [("acl", "bucket", "key")]


def test_events_of_a_message_without_any() -> None:
    assert decode_events('{"Event": "s3:TestEvent"}') == []
    with pytest.raises(MessageError):
        decode_events('{"v": 1}')
