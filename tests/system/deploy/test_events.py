"""The sample events in events/: their handlers read them, and each means what its name says."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from auditor.aws.sqs import Received
from auditor.hashing.queue.message import HashMessage, encode
from auditor.hashing.queue.notification import decode_events, decode_notification
from auditor.lambdas.event import read_event
from deploy.errors import BuildError
from deploy.events import Subject, about, kinds, sample, written
from deploy.events import main as make_event
from deploy.invoke import check_local, function_for, main
from deploy.options import ROOT
from tools.local_aws.samples import BUCKET, OF_EVENTS, content

EVENTS = ROOT / "events"
ENVIRONMENT = {"AUDITOR_BUCKETS": "one-bucket,other-bucket", "AUDITOR_OUT": "s3://reports/audits"}
FOR_THE_AUDIT = {"schedule", "rule-schedule", "all-buckets", "manual-prefix", "hand-over"}
FOR_VERIFYING = {"verify"}
NEW = [
    "s3-notification",
    "s3-notification-sns",
    "s3-eventbridge",
    "s3-notification-restored",
    "s3-eventbridge-restored",
]
DELETED = ["s3-notification-deleted", "s3-eventbridge-deleted"]
ACLS = ["s3-notification-acl", "s3-eventbridge-acl"]
FOR_HASHING = {"sqs-batch", "s3-test-event", *NEW, *DELETED}
NEW_OBJECT = "photos/summer 2026/café 100%+.jpg"
GONE = "photos/summer 2026/gone 100%+.jpg"


def event(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_bytes())
    return loaded


def etag(key: str) -> str:
    """The ETag that the object has on `make local-aws`."""
    return hashlib.md5(content(key)).hexdigest()


def bodies(name: str) -> list[str]:
    return [record["body"] for record in event(name)["Records"]]


def test_every_sample_is_tried_here() -> None:
    assert {path.stem for path in EVENTS.iterdir()} == FOR_THE_AUDIT | FOR_HASHING | FOR_VERIFYING | {*ACLS}


@pytest.mark.parametrize("name", ["schedule", "rule-schedule"])
def test_a_schedule_audits_every_configured_bucket(name: str) -> None:
    invocation = read_event(event(name), ENVIRONMENT)
    assert [target.uri for target in invocation.targets] == ["s3://one-bucket", "s3://other-bucket"]
    assert (invocation.run, invocation.hop) == (None, 0)


def test_every_bucket_of_the_account_is_listed_by_the_audit_itself() -> None:
    invocation = read_event(event("all-buckets"), ENVIRONMENT)
    assert (invocation.all_buckets, invocation.targets, invocation.run) == (True, (), None)


def test_a_manual_invocation_audits_its_prefix_alone() -> None:
    (target,) = read_event(event("manual-prefix"), ENVIRONMENT).targets
    assert target.uri == "s3://auditor-sample/files/"


def test_a_hand_over_goes_on_with_its_run() -> None:
    invocation = read_event(event("hand-over"), ENVIRONMENT)
    assert [target.uri for target in invocation.targets] == [f"s3://{BUCKET}/invoices/"]
    assert (invocation.run, invocation.hop) == ("20260102T030405Z-a1b2c3", 1)


@pytest.mark.parametrize("name", sorted({*FOR_HASHING, *ACLS}))
def test_a_batch_has_the_fields_that_lambda_sends(name: str) -> None:
    for record in event(name)["Records"]:
        assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()
        assert record["eventSource"] == "aws:sqs"
        Received(record["messageId"], record["receiptHandle"], record["body"], 1)
    ids = [record["messageId"] for record in event(name)["Records"]]
    assert len(ids) == len(set(ids))


def test_a_batch_of_ours_is_written_as_we_write_it() -> None:
    for body in bodies("sqs-batch"):
        (message,) = decoded(body)
        assert encode(message) == body


def test_the_objects_of_our_messages_are_those_that_local_aws_has() -> None:
    for body in bodies("sqs-batch"):
        (message,) = decoded(body)
        assert message.bucket == BUCKET
        for task in message.tasks:
            assert (task.etag, task.size, task.version_id) == (etag(task.key), OF_EVENTS[task.key], None)


@pytest.mark.parametrize("name", NEW)
def test_a_new_object_has_the_same_key_in_every_form(name: str) -> None:
    (body,) = bodies(name)
    (message,) = decoded(body)
    (task,) = message.tasks
    assert (message.bucket, message.run, task.key, task.size) == (BUCKET, "event", NEW_OBJECT, 204800)
    assert (task.etag, task.version_id) == (etag(NEW_OBJECT), None)


@pytest.mark.parametrize("name", ACLS)
def test_another_acl_has_the_same_key_in_every_form_and_is_for_renewals(name: str) -> None:
    ((found,),) = map(decode_events, bodies(name))
    assert (found.kind, found.bucket, found.key, found.version_id) == ("acl", BUCKET, NEW_OBJECT, None)
    assert function_for(event(name)) == "renew"
    own = Subject(bucket="mine", key=KEY, etag="e" * 32, size=7, version_id="v.1", moment=MOMENT)
    (record,) = about(sample(name), own)["Records"]
    ((made,),) = (decode_events(record["body"]),)
    assert (made.kind, made.bucket, made.key, made.version_id) == ("acl", "mine", KEY, "v.1")


def test_an_event_is_for_the_function_that_reads_it() -> None:
    assert {function_for(event(name)) for name in FOR_HASHING} == {"hashing"}
    assert {function_for(event(name)) for name in FOR_THE_AUDIT} == {"audit"}
    assert function_for({"Records": [{}, None, {"body": "not JSON"}]}) == "hashing"


@pytest.mark.parametrize("name", DELETED)
def test_an_object_a_marker_and_a_version_are_told_apart_in_every_form(name: str) -> None:
    unversioned, hidden, of_version = (decode_notification(body) for body in bodies(name))
    assert (unversioned.messages, hidden.messages, of_version.messages) == ((), (), ())
    for found, version in ((unversioned, None), (hidden, "8hQ2kGfAaVbW1cXsPzYkN5rTq0mEoJdU")):
        (noticed,) = found.notices
        assert (noticed.bucket, noticed.notice.key, noticed.notice.deleted) == (BUCKET, GONE, True)
        assert (noticed.notice.version_id, noticed.notice.at) == (version, "2026-01-02T03:04:06Z")
    (removed,) = of_version.removals
    assert (removed.event.key, removed.event.version_id) == (GONE, "096fKKXTRTtl3on89fVO.nfljtsv6qko")
    assert of_version.notices == ()


def test_the_event_that_s3_sends_at_the_start_is_known_for_what_it_is() -> None:
    (body,) = bodies("s3-test-event")
    assert decode_notification(body).test


def test_an_invocation_without_a_bucket_is_refused_with_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--stage", "prod", "--bucket", ""]) == 1
    assert capsys.readouterr().err == "invoke: no bucket is named: make invoke BUCKET=my-bucket [PREFIX=..]\n"


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'"schedule"', b"\xff", b"[" * 100_000])
def test_a_file_that_holds_no_event_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    file = tmp_path / "event.json"
    if content is not None:
        file.write_bytes(content)
    assert main(["--stage", "local", "--undeployed", "--event", str(file)]) == 1
    assert f"{file} is no event: " in capsys.readouterr().err


MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize("kind", sorted({*NEW, *ACLS, "s3-test-event"}))
def test_a_sample_is_what_the_maker_makes_of_its_own_object(kind: str) -> None:
    one = Subject(bucket=BUCKET, key=NEW_OBJECT, etag=etag(NEW_OBJECT), size=OF_EVENTS[NEW_OBJECT], moment=MOMENT)
    assert (EVENTS / f"{kind}.json").read_text() == written(about(sample(kind), one))


KEY = "a b/ü+%25 &=.txt"


@pytest.mark.parametrize("name", [*NEW, "sqs-batch"])
@pytest.mark.parametrize("version", [None, "v.1"])
def test_an_event_is_made_for_an_object_of_ones_own(name: str, version: str | None) -> None:
    own = Subject(bucket="mine", key=KEY, etag="e" * 32, size=7, version_id=version, moment=MOMENT)
    made = about(sample(name), own)
    (record,) = made["Records"]
    assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()
    (message,) = decoded(record["body"])
    (task,) = message.tasks
    assert (message.bucket, task.key, task.etag, task.size, task.version_id) == ("mine", KEY, "e" * 32, 7, version)


@pytest.mark.parametrize("name", DELETED)
def test_an_event_is_made_for_ones_own_object_that_is_gone(name: str) -> None:
    made = about(sample(name), Subject(bucket="mine", key=KEY, moment=MOMENT))
    found = [decode_notification(record["body"]) for record in made["Records"]]
    keys = [(one.bucket, one.notice.key) for each in found for one in each.notices]
    keys += [(one.bucket, one.event.key) for each in found for one in each.removals]
    assert keys == [("mine", KEY)] * 3


def test_a_later_event_of_the_same_object_comes_after_the_first() -> None:
    first, second = (
        Subject(bucket="mine", key=KEY, moment=MOMENT.replace(second=5 + seconds, microsecond=microsecond))
        for seconds, microsecond in ((0, 999_999), (1, 0))
    )
    assert first.sequencer(2) < second.sequencer(0)
    assert len(first.sequencer(2)) == len(second.sequencer(0)) == 18


def test_an_event_for_an_audit_is_made_of_bucket_and_prefix() -> None:
    own = Subject(bucket="mine", prefix="p/", key=KEY, run="RUN", moment=MOMENT)
    assert about(sample("manual-prefix"), own) == about(sample("verify"), own) == {"bucket": "mine", "prefix": "p/"}
    assert about(sample("schedule"), own) == {}
    assert about(sample("hand-over"), own) == {
        "bucket": "mine",
        "prefix": "p/",
        "versions": False,
        "hop": 1,
        "run": "RUN",
        "start_after": KEY,
    }


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ([], "KIND is ''"),
        (["--kind", "../README"], "KIND is '../README': give all-buckets"),
        (["--kind", "schedule"], "no bucket is named"),
        (["--kind", "s3-notification", "--bucket", "mine"], "no key is named"),
    ],
)
def test_an_event_that_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], given: list[str], word: str
) -> None:
    assert make_event(given) == 1
    assert word in capsys.readouterr().err


def test_every_sample_is_a_kind() -> None:
    assert set(kinds()) == FOR_THE_AUDIT | FOR_HASHING | FOR_VERIFYING | {*ACLS}


HERE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:5000"}


def test_a_local_invocation_asks_the_server_on_this_machine() -> None:
    assert check_local(HERE | {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:5001/"}) == HERE["AWS_ENDPOINT_URL"]


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({}, "make local-aws"),
        ({"AWS_ENDPOINT_URL": ""}, "make local-aws"),
        ({"AWS_ENDPOINT_URL": "http://localhost:5000"}, "make local-aws"),
        ({"AWS_ENDPOINT_URL": "https://sqs.eu-west-1.amazonaws.com"}, "make local-aws"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:5000@example.com"}, "make local-aws"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1.example.com:80"}, "make local-aws"),
        (HERE | {"AWS_ENDPOINT_URL_S3": "https://example.com"}, "unset AWS_ENDPOINT_URL_S3"),
        (HERE | {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, "unset AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
    ],
)
def test_a_local_invocation_that_would_ask_elsewhere_is_refused(environ: dict[str, str], word: str) -> None:
    with pytest.raises(BuildError, match=word):
        check_local(environ)


def decoded(body: str) -> list[HashMessage]:
    return list(decode_notification(body).messages)
