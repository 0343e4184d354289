"""S3's events in the three forms that reach a queue, and bodies that are none."""

from __future__ import annotations

import json
import logging
import random
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import MessageError
from auditor.hashing.queue.message import HashTask
from auditor.hashing.queue.notification import decode_events, decode_notification, newest

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
    holder = {"key": key, "etag": "etag"} | ({"size": 3} if deletion is None else {}) | entry
    detail = {"version": "0", "bucket": {"name": "bucket"}, "object": holder}
    detail |= {} if deletion is None else {"deletion-type": deletion}
    return json.dumps({"version": "0", "source": "aws.s3", "detail-type": kind, "detail": detail})


def only_task(body: str) -> HashTask:
    (message,) = decode_notification(body).messages
    assert (message.run, message.bucket, message.algorithms) == ("event", "bucket", ("sha256",))
    (task,) = message.tasks
    return task


def test_key_is_unquoted_once_in_s3s_own_form_and_not_at_all_in_event_bridges() -> None:
    for key in ODD_KEYS:
        expected = HashTask(key, None, "etag", 3, sequencer="0")
        for body in (plain(record(key)), event_bridge(key, sequencer="0")):
            assert only_task(body) == only_task(through_sns(body)) == expected


def test_records_of_several_buckets_are_one_message_a_bucket() -> None:
    body = plain(record("a", "one"), record("b", "two"), record("c", "one"))
    messages = decode_notification(body, ("md5", "sha1")).messages
    found = [(message.bucket, [task.key for task in message.tasks]) for message in messages]
    assert found == [("one", ["a", "c"]), ("two", ["b"])]
    assert {message.algorithms for message in messages} == {("md5", "sha1")}


REFUSED: list[tuple[str, str]] = [
    ('{"hello": 1}', "neither a message of the auditor nor an S3 notification"),
    (plain(record() | {"eventSource": "aws:sqs"}), "eventSource is not aws:s3"),
    (plain(record(eTag='""')), "eTag is not a string with text"),
    (event_bridge(etag='"'), "etag is not a string with text"),
    (plain(record() | {"s3": {"bucket": {"name": "bucket"}, "object": {"key": "%ff"}}}), "not valid unicode"),
    (plain(record("k" * 1025)), "key has 1025 bytes"),
    (plain(record(versionId="v" * 1025)), "versionId"),
    (json.dumps({"Type": "SubscriptionConfirmation", "Message": "x"}), "SNS envelope holds no notification"),
    (through_sns(through_sns(plain(record()))), "neither a message of the auditor"),
    (event_bridge().replace("aws.s3", "my.app"), "source is not aws.s3"),
    (plain(record() | {"eventVersion": "20.1"}), "Records[0].eventVersion is not 2.x"),
    (event_bridge().replace('"version": "0", "bucket"', '"event-version": "2.0", "bucket"'), "is not 1.x"),
    (event_bridge(sequencer="0x12"), "detail.object.sequencer is not hexadecimal"),
    (event_bridge().replace('{"version"', '{"time": "0000-00-00", "version"', 1), "time is not a time"),
    (event_bridge(kind="Object Deleted", deletion="Moved"), "are Delete Marker Created, Permanently Deleted"),
    (event_bridge(kind="Object Deleted", deletion="Permanently Deleted", key=""), "detail.object.key is not"),
    (plain(record(event="ObjectRemoved:Delete", key="")), "Records[0].s3.object.key is not"),
]
"""Each with its reason. test_message_faults.py has wrong values of every field."""


def test_malformed_notification_is_refused_with_its_reason() -> None:
    failures = []
    for body, reason in REFUSED:
        try:
            found = repr(decode_notification(body))
        except MessageError as error:
            found = str(error)
        if reason not in found:
            failures.append((body[:200], reason, found))
    assert not failures, failures


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


def test_test_event_of_s3_asks_for_nothing() -> None:
    body = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "bucket"})
    for form in (body, through_sns(body)):
        found = decode_notification(form)
        assert (found.test, found.messages, found.notices, found.removals) == (True, (), (), ())


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AT = "2026-01-02T03:04:05Z"


def told(body: str) -> Any:
    return decode_notification(body, now=lambda: NOW)


def seen(body: str) -> list[tuple[str, str | None, bool, str]]:
    """Key, version, "deleted", and sequencer of each event that the ledger is told of, after those on one version."""
    found = told(body)
    assert {one.bucket for one in (*found.notices, *found.removals)} == {"bucket"}
    events, notices = [one.event for one in found.removals], [one.notice for one in found.notices]
    assert {(one.what, one.at) for one in events} | {("deleted", one.at) for one in notices} == {("deleted", AT)}
    return [
        *(("version", one.version_id, True, one.detail.get("sequencer", "")) for one in events),
        *((one.key, one.version_id, one.deleted, one.sequencer) for one in notices),
    ]


def bare(event: str, key: str = "key", **entry: Any) -> str:
    """A record as deletions are: without size and ETag."""
    made = record(event=event)
    made["s3"]["object"] = {"key": quote_plus(key)} | entry
    return plain(made)


def test_created_object_is_a_task_and_a_notice_in_every_spelling() -> None:
    for event in (f"{prefix}ObjectCreated:{how}" for prefix in ("", "s3:") for how in ("Put", "Post", "Copy", "New")):
        body = plain(record("a b", event=event, sequencer="00AF", versionId="v1"))
        for form in (body, through_sns(body)):
            assert seen(form) == [("a b", "v1", False, "00AF")], event
            (notice,) = (one.notice for one in told(form).notices)
            assert (notice.etag, notice.size) == ("etag", 3)
            assert only_task(form) == HashTask("a b", "v1", "etag", 3, sequencer="00AF")


def test_deletion_is_of_the_key_or_a_line_of_its_history() -> None:
    """A line ("version") tells of one version alone; the key may still have an object."""
    removed, hidden, expired = "ObjectRemoved:Delete", "ObjectRemoved:DeleteMarkerCreated", "LifecycleExpiration:Delete"
    cases = {
        bare(removed, sequencer="2"): ("key", None, True, "2"),
        bare(f"s3:{removed}", "a b", sequencer="2"): ("a b", None, True, "2"),
        bare(expired, sequencer="2", versionId=None): ("key", None, True, "2"),
        bare(removed, sequencer="2", versionId=""): ("key", None, True, "2"),
        bare(hidden, sequencer="2", versionId="marker"): ("key", "marker", True, "2"),
        bare(f"{expired}MarkerCreated", sequencer="2", versionId="m"): ("key", "m", True, "2"),
        bare(hidden, sequencer="2", versionId="null"): ("key", "null", True, "2"),
        bare(removed, sequencer="2", versionId="v1"): ("version", "v1", True, "2"),
        bare(expired, sequencer="2", versionId="v1"): ("version", "v1", True, "2"),
        bare(removed, sequencer="2", versionId="null"): ("version", "null", True, "2"),
        bare(removed): ("version", None, True, ""),
        bare(hidden, versionId="m"): ("version", "m", True, ""),
    }
    for deletion, version, expected in (
        ("Permanently Deleted", {}, ("a+b", None, True, "2")),
        ("Delete Marker Created", {"version-id": "m"}, ("a+b", "m", True, "2")),
        ("Permanently Deleted", {"version-id": "v1"}, ("version", "v1", True, "2")),
    ):
        cases[event_bridge("a+b", "Object Deleted", deletion=deletion, sequencer="2", **version)] = expected
    failures = {
        body: seen(form) for body, one in cases.items() for form in (body, through_sns(body)) if seen(form) != [one]
    }
    assert not failures, failures
    assert not any(told(body).messages for body in cases)


def test_restored_object_is_hashed_without_effect_on_the_order() -> None:
    for body in (
        plain(record(event="ObjectRestore:Completed", sequencer="0055AED6DCD90281E5", versionId="v1")),
        event_bridge(kind="Object Restore Completed", **{"version-id": "v1"}),
    ):
        assert (only_task(body), seen(body) if told(body).notices else []) == (HashTask("key", "v1", "etag", 3), [])


def test_other_events_are_ignored_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    others = ["ObjectTagging:Put", "ObjectAcl:Put", "ObjectRestore:Post", "LifecycleTransition", "IntelligentTiering"]
    for event in (*others, "Replication:OperationFailedReplication", "SomethingNew:\u202eOf\nTomorrow" + "x" * 500):
        for body in (plain(record(event=event) | {"s3": None}), event_bridge(kind=event)):
            caplog.clear()
            found = told(body)
            assert (found.messages, found.notices, found.removals) == ((), (), ())
            (logged,) = caplog.records
            assert "ignoring" in logged.getMessage()
            assert (logged.levelno, logged.getMessage().isprintable()) == (logging.INFO, True)
            assert len(logged.getMessage()) < 200


def test_created_object_of_an_old_form_without_sequencer_is_hashed_and_not_ordered() -> None:
    old = record() | {"eventVersion": "2.0"}
    del old["s3"]["object"]["sequencer"]
    assert told(plain(old)).notices == ()
    assert only_task(plain(old)) == HashTask("key", None, "etag", 3)


def test_lost_object_is_a_warning_and_its_neighbours_are_hashed(caplog: pytest.LogCaptureFixture) -> None:
    lost = record("lost\n\u202e" + "x" * 500, event="s3:ReducedRedundancyLostObject")
    messages = told(plain(lost, record("kept"))).messages
    assert [task.key for message in messages for task in message.tasks] == ["kept"]
    (logged,) = caplog.records
    assert logged.levelno == logging.WARNING
    assert "lost\\n\\u202exxx" in logged.getMessage()
    assert logged.getMessage().isprintable()
    assert len(logged.getMessage()) < 250


def test_time_of_the_event_is_the_notices() -> None:
    for time, at in (
        ("2026-01-02T04:05:06.789Z", "2026-01-02T04:05:06Z"),
        ("2026-01-02T04:05:06+02:00", "2026-01-02T02:05:06Z"),
        ("2026-01-02T04:05:06", "2026-01-02T04:05:06Z"),
    ):
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
    for seed in range(6):
        shuffled = events.copy()
        random.Random(seed).shuffle(shuffled)
        found = told(plain(*shuffled))
        tasks = {(message.bucket, task.key, task.etag) for message in found.messages for task in message.tasks}
        assert tasks == {("bucket", "key", "third"), ("bucket", "other", "other"), ("another", "key", "first")}
        of_key = [one.notice for one in found.notices if (one.bucket, one.notice.key) == ("bucket", "key")]
        assert [one.etag for one in of_key] == ["first", "second", None, "third"], "the third event is the deletion"
        assert found.superseded == 2


TASKS = {
    "v1": HashTask("a", "v1", "v1", 1, sequencer="01"),
    "v2": HashTask("a", "v2", "v2", 1, sequencer="02"),
    "older": HashTask("a", None, "older", 1, sequencer="10"),
    "newer": HashTask("a", None, "newer", 1, sequencer="2"),  # padded, it is 20
    "null": HashTask("a", "null", "null", 1, sequencer="1F"),
    "unordered": HashTask("a", None, "unordered", 1),
    "lower case": HashTask("b", "null", "lower case", 1, sequencer="a0"),
    "upper case": HashTask("b", None, "upper case", 1, sequencer="A1"),
}


@given(st.permutations([*TASKS.values(), TASKS["v2"], TASKS["unordered"]]))
def test_newest_of_a_place_stays_whatever_the_order(tasks: list[HashTask]) -> None:
    assert [task.etag for task in newest(tasks)] == ["unordered", "v1", "v2", "newer", "upper case"]


def test_events_on_acls_are_for_those_who_ask() -> None:
    for body in (plain(record(event="ObjectAcl:Put")), event_bridge(kind="Object ACL Updated")):
        assert told(body).messages == ()
        assert [(one.kind, one.bucket, one.key) for one in decode_events(body)] == [("acl", "bucket", "key")]
    assert decode_events('{"Event": "s3:TestEvent"}') == []
    with pytest.raises(MessageError):
        decode_events('{"v": 1}')
