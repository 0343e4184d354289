"""The sample events in events/: their handlers read them, and each means what its name says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from auditor.hashing.queue.message import encode
from auditor.hashing.queue.notification import Notification, decode_events, decode_notification
from auditor.lambdas.event import read_event
from deploy.errors import BuildError
from deploy.events import Subject, about, kinds, sample, written
from deploy.events import main as make_event
from deploy.invoke import check_local, function_for, main
from deploy.options import ROOT
from tools.local_aws.samples import BUCKET, OF_EVENTS, content

EVENTS = ROOT / "events"
ENVIRONMENT = {"AUDITOR_BUCKETS": "one-bucket,other-bucket", "AUDITOR_OUT": "s3://reports/audits"}
FOR_THE_AUDIT = {"schedule", "rule-schedule", "all-buckets", "manual-prefix", "resume"}
NEW = {
    "s3-notification",
    "s3-notification-sns",
    "s3-eventbridge",
    "s3-notification-restored",
    "s3-eventbridge-restored",
}
DELETED = {"s3-notification-deleted", "s3-eventbridge-deleted"}
ACLS = {"s3-notification-acl", "s3-eventbridge-acl"}
FOR_HASHING = {"sqs-batch", "s3-test-event", *NEW, *DELETED}
NEW_OBJECT = "photos/summer 2026/café 100%+.jpg"
GONE = "photos/summer 2026/gone 100%+.jpg"
KEY = "a b/ü+%25 &=.txt"
RUN = "20260102T030405Z-a1b2c3"
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MARKER, VERSION = "8hQ2kGfAaVbW1cXsPzYkN5rTq0mEoJdU", "096fKKXTRTtl3on89fVO.nfljtsv6qko"


def event(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_bytes())
    return loaded


def etag(key: str) -> str:
    """The ETag that the object has on `make local-aws`."""
    return hashlib.md5(content(key)).hexdigest()


def decoded(records: Iterable[dict[str, Any]]) -> list[Notification]:
    return [decode_notification(record["body"]) for record in records]


def test_each_sample_is_a_kind_for_the_function_that_reads_it() -> None:
    names = {path.stem for path in EVENTS.iterdir()}
    assert names == set(kinds()) == FOR_THE_AUDIT | FOR_HASHING | ACLS | {"verify"}
    expected = {**dict.fromkeys(FOR_THE_AUDIT, "audit"), **dict.fromkeys(FOR_HASHING, "hashing")}
    expected |= dict.fromkeys(ACLS, "renew")
    assert {name: function_for(event(name)) for name in expected} == expected
    assert function_for({"Records": [{}, None, {"body": "not JSON"}]}) == "hashing"
    assert {function_for({"bucket": BUCKET, name: RUN}) for name in ("start", "verification")} == {"machine"}


def test_an_event_for_the_audit_names_its_targets_and_its_run() -> None:
    both = ["s3://one-bucket", "s3://other-bucket"]
    expected: dict[str, tuple[list[str], bool, str | None]] = {
        "schedule": (both, False, None),
        "rule-schedule": (both, False, None),
        "all-buckets": ([], True, None),
        "manual-prefix": (["s3://auditor-sample/files/"], False, None),
        "resume": ([f"s3://{BUCKET}/invoices/"], False, RUN),
    }
    for name, wanted in expected.items():
        found = read_event(event(name), ENVIRONMENT)
        assert ([one.uri for one in found.targets], bool(found.all_buckets), found.run) == wanted, name


def test_a_batch_has_the_fields_that_lambda_sends() -> None:
    for name in FOR_HASHING | ACLS:
        records = event(name)["Records"]
        for record in records:
            assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest(), name
            assert record["eventSource"] == "aws:sqs"
            assert record["receiptHandle"]
        assert len({record["messageId"] for record in records}) == len(records), name


def test_a_batch_of_ours_is_written_as_we_write_it_of_objects_that_local_aws_has() -> None:
    for record in event("sqs-batch")["Records"]:
        (message,) = decode_notification(record["body"]).messages
        assert encode(message) == record["body"]
        assert message.bucket == BUCKET
        for task in message.tasks:
            assert (task.etag, task.size, task.version_id) == (etag(task.key), OF_EVENTS[task.key], None)
    (start,) = decoded(event("s3-test-event")["Records"])
    assert start.test


def test_another_acl_has_the_same_key_in_every_form() -> None:
    own = Subject(bucket="mine", key=KEY, etag="e" * 32, size=7, version_id="v.1", moment=MOMENT)
    for name in ACLS:
        for records, expected in (
            (event(name)["Records"], ("acl", BUCKET, NEW_OBJECT, None)),
            (about(sample(name), own)["Records"], ("acl", "mine", KEY, "v.1")),
        ):
            ((found,),) = (decode_events(record["body"]) for record in records)
            assert (found.kind, found.bucket, found.key, found.version_id) == expected, name


def test_an_object_a_marker_and_a_version_that_are_deleted_are_told_apart_in_every_form() -> None:
    for name in DELETED:
        unversioned, hidden, of_version = decoded(event(name)["Records"])
        assert (unversioned.messages, hidden.messages, of_version.messages) == ((), (), ()), name
        for found, version in ((unversioned, None), (hidden, MARKER)):
            (noticed,) = found.notices
            assert (noticed.bucket, noticed.notice.key, noticed.notice.deleted) == (BUCKET, GONE, True)
            assert (noticed.notice.version_id, noticed.notice.at) == (version, "2026-01-02T03:04:06Z")
        (removed,) = of_version.removals
        assert (removed.event.key, removed.event.version_id, of_version.notices) == (GONE, VERSION, ())


def test_a_sample_is_what_the_maker_makes_of_its_own_object() -> None:
    assert OF_EVENTS[NEW_OBJECT] == 204800
    one = Subject(bucket=BUCKET, key=NEW_OBJECT, etag=etag(NEW_OBJECT), size=204800, moment=MOMENT)
    for kind in NEW | ACLS | {"s3-test-event"}:
        assert (EVENTS / f"{kind}.json").read_text() == written(about(sample(kind), one)), kind


@pytest.mark.parametrize("version", [None, "v.1"])
def test_an_event_is_made_for_an_object_of_ones_own(version: str | None) -> None:
    own = Subject(bucket="mine", key=KEY, etag="e" * 32, size=7, version_id=version, moment=MOMENT)
    for name in NEW | {"sqs-batch"}:
        (record,) = about(sample(name), own)["Records"]
        assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest(), name
        (message,) = decode_notification(record["body"]).messages
        (task,) = message.tasks
        assert (message.bucket, task.key, task.etag, task.size, task.version_id) == ("mine", KEY, "e" * 32, 7, version)
        assert name == "sqs-batch" or message.run == "event"
    for name in DELETED:
        found = decoded(about(sample(name), Subject(bucket="mine", key=KEY, moment=MOMENT))["Records"])
        keys = [(one.bucket, one.notice.key) for each in found for one in each.notices]
        keys += [(one.bucket, one.event.key) for each in found for one in each.removals]
        assert keys == [("mine", KEY)] * 3, name


def test_a_later_event_of_the_same_object_comes_after_the_first() -> None:
    first, second = (
        Subject(bucket="mine", key=KEY, moment=MOMENT.replace(second=5 + seconds, microsecond=microsecond))
        for seconds, microsecond in ((0, 999_999), (1, 0))
    )
    assert first.sequencer(2) < second.sequencer(0)
    assert len(first.sequencer(2)) == len(second.sequencer(0)) == 18


def test_an_event_for_an_audit_is_made_of_bucket_and_prefix() -> None:
    own = Subject(bucket="mine", prefix="p/", key=KEY, run="RUN", moment=MOMENT)
    place = {"bucket": "mine", "prefix": "p/"}
    assert about(sample("manual-prefix"), own) == about(sample("verify"), own) == place
    assert about(sample("schedule"), own) == {}
    assert about(sample("resume"), own) == {**place, "versions": False, "run": "RUN"}


def test_an_event_that_cannot_be_made_or_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given, word in (
        ("", "KIND is ''"),
        ("--kind ../README", "KIND is '../README': give all-buckets"),
        ("--kind schedule", "no bucket is named"),
        ("--kind s3-notification --bucket mine", "no key is named"),
    ):
        assert make_event(given.split()) == 1, given
        assert word in capsys.readouterr().err
    assert main(["--stage", "prod", "--bucket", ""]) == 1
    assert capsys.readouterr().err == "invoke: no bucket is named: make invoke BUCKET=my-bucket [PREFIX=..]\n"
    file = tmp_path / "event.json"
    for data in (None, b"", b"{", b"[]", b'"schedule"', b"\xff", b"[" * 100_000):
        if data is not None:
            file.write_bytes(data)
        assert main(["--stage", "local", "--undeployed", "--event", str(file)]) == 1
        assert f"{file} is no event: " in capsys.readouterr().err, data


def test_a_local_invocation_asks_the_server_on_this_machine_and_nothing_else() -> None:
    here = {"AWS_ENDPOINT_URL": "http://127.0.0.1:5000"}
    assert check_local(here | {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:5001/"}) == here["AWS_ENDPOINT_URL"]
    elsewhere = (
        "",
        "http://localhost:5000",
        "https://sqs.eu-west-1.amazonaws.com",
        "http://127.0.0.1:5000@example.com",
        "http://127.0.0.1.example.com:80",
    )
    refused: list[tuple[dict[str, str], str]] = [({}, "make local-aws")]
    refused += [({"AWS_ENDPOINT_URL": url}, "make local-aws") for url in elsewhere]
    refused.append((here | {"AWS_ENDPOINT_URL_S3": "https://example.com"}, "unset AWS_ENDPOINT_URL_S3"))
    ignoring = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
    refused.append((here | {ignoring: "true"}, f"unset {ignoring}"))
    for environ, word in refused:
        with pytest.raises(BuildError, match=word):
            check_local(environ)
