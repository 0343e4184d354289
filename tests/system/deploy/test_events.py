"""The sample events in events/: their handlers read them, and each means what its name says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from auditor.aws.sqs import Received
from auditor.hashing.queue.message import HashMessage, encode
from auditor.hashing.queue.notification import decode_notification
from auditor.lambdas.event import read_event
from deploy.errors import BuildError
from deploy.invoke import check_local, main
from deploy.options import ROOT

EVENTS = ROOT / "events"
ENVIRONMENT = {"AUDITOR_BUCKETS": "sample-bucket,other-bucket", "AUDITOR_OUT": "s3://reports/audits"}
FOR_THE_AUDIT = {"schedule", "rule-schedule", "manual-prefix", "hand-over"}
NEW = [
    "s3-notification",
    "s3-notification-sns",
    "s3-eventbridge",
    "s3-notification-restored",
    "s3-eventbridge-restored",
]
DELETED = ["s3-notification-deleted", "s3-eventbridge-deleted"]
FOR_HASHING = {"sqs-batch", "s3-test-event", *NEW, *DELETED}
NEW_OBJECT = "photos/summer 2026/café 100%+.jpg"


def event(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_bytes())
    return loaded


def bodies(name: str) -> list[str]:
    return [record["body"] for record in event(name)["Records"]]


def test_every_sample_is_tried_here() -> None:
    assert {path.stem for path in EVENTS.iterdir()} == FOR_THE_AUDIT | FOR_HASHING


@pytest.mark.parametrize("name", ["schedule", "rule-schedule"])
def test_a_schedule_audits_every_configured_bucket(name: str) -> None:
    invocation = read_event(event(name), ENVIRONMENT)
    assert [target.uri for target in invocation.targets] == ["s3://sample-bucket", "s3://other-bucket"]
    assert (invocation.run, invocation.hop) == (None, 0)


def test_a_manual_invocation_audits_its_prefix_alone() -> None:
    (target,) = read_event(event("manual-prefix"), ENVIRONMENT).targets
    assert target.uri == "s3://auditor-sample/files/"


def test_a_hand_over_goes_on_with_its_run() -> None:
    invocation = read_event(event("hand-over"), ENVIRONMENT)
    assert [target.uri for target in invocation.targets] == ["s3://sample-bucket/invoices/"]
    assert (invocation.run, invocation.hop) == ("20260102T030405Z-a1b2c3", 1)


@pytest.mark.parametrize("name", sorted(FOR_HASHING))
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


@pytest.mark.parametrize("name", NEW)
def test_a_new_object_has_the_same_key_in_every_form(name: str) -> None:
    (body,) = bodies(name)
    (message,) = decoded(body)
    (task,) = message.tasks
    assert (message.bucket, message.run, task.key, task.size) == ("sample-bucket", "event", NEW_OBJECT, 204800)
    assert (len(task.etag), task.version_id) == (32, "096fKKXTRTtl3on89fVO.nfljtsv6qko")


@pytest.mark.parametrize("name", DELETED)
def test_an_object_a_marker_and_a_version_are_told_apart_in_every_form(name: str) -> None:
    unversioned, hidden, of_version = (decode_notification(body) for body in bodies(name))
    assert (unversioned.messages, hidden.messages, of_version.messages) == ((), (), ())
    for found, version in ((unversioned, None), (hidden, "8hQ2kGfAaVbW1cXsPzYkN5rTq0mEoJdU")):
        (noticed,) = found.notices
        assert (noticed.bucket, noticed.notice.key, noticed.notice.deleted) == ("sample-bucket", NEW_OBJECT, True)
        assert (noticed.notice.version_id, noticed.notice.at) == (version, "2026-01-02T03:04:06Z")
    (removed,) = of_version.removals
    assert (removed.event.key, removed.event.version_id) == (NEW_OBJECT, "096fKKXTRTtl3on89fVO.nfljtsv6qko")
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
