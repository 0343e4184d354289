"""Alerts and events of `auditor audit` and `auditor verify`: which nights send what, and channels that refuse."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from auditor.cli.main import main
from tests.cli.conftest import Run
from tests.support.servers.accounts import OWN, AccountsServer
from tests.support.servers.stub import StubServer


@dataclass
class Inbox:
    """A topic on moto's server, and the queue that is subscribed to it."""

    topic: str
    queue: str

    def taken(self) -> list[dict[str, Any]]:
        """The messages that came since the last call."""
        sqs, found = boto3.client("sqs"), []
        while got := sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages"):
            for one in got:
                sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=one["ReceiptHandle"])
                found.append(json.loads(one["Body"]))
        return found


def made() -> Inbox:
    name, sns, sqs = f"topic-{uuid4().hex}", boto3.client("sns"), boto3.client("sqs")
    arn = sns.create_topic(Name=name)["TopicArn"]
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    endpoint = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=endpoint)
    return Inbox(arn, queue)


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch, moto_url: str, stub: StubServer) -> Run:
    """Run one command on the stub S3, beside moto's SNS and EventBridge."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    return lambda *arguments: run(*arguments, "--endpoint-url", stub.url)


def test_nights_of_a_bucket_send_one_alert_each_and_quiet_ones_none(run: Run, stub: StubServer) -> None:
    topic, chat = made(), made()
    audit = ("audit", "s3://audited", "--only", "O02", "--topic", topic.topic, "--chat-topic", chat.topic)
    stub.put("audited", "in/a", b"x", acl="public-read")
    assert run(*audit)[0] == 3
    (first,), (shown,) = topic.taken(), chat.taken()
    assert first["Subject"] == "S3 audit of audited: 1 object exposed; 1 finding (1 high)"
    assert "below in/" in first["Message"]
    assert "in/a" not in first["Message"]
    assert json.loads(shown["Message"])["content"]["title"] == first["Subject"]

    assert run(*audit)[0] == 3
    assert (topic.taken(), chat.taken()) == ([], [])

    stub.put("audited", "in/b", b"x", acl="public-read")
    stub.put("audited", "in/c", b"x", deny={"acl"})
    code, out, _ = run(*audit, "--format", "json")
    assert code == 4
    (third,) = topic.taken()
    assert third["Subject"] == (
        "S3 audit of audited: 1 object newly exposed; 1 new finding (1 high); 1 object could not be check..."
    )
    summary = json.loads(out)
    since = ", ".join(f"{number} {kind}" for kind, number in summary["changes"]["classes"].items())
    assert f"Since the last run, {summary['changes']['against']}: {since} (verdicts and findings)." in third["Message"]
    assert "O02 (high): The ACL lets anyone on the internet read 2 objects below in/ (1 new)" in third["Message"]
    assert f"Report: {summary['out']}/report.html" in third["Message"]

    assert run(*audit[:2], "--only", "O02", "--fail-on", "never")[0] == 4
    assert topic.taken() == []


def test_failures_of_a_command_are_one_alert(run: Run, stub: StubServer) -> None:
    topic = made()
    stub.put("audited", "a", b"x")
    code, _, _ = run("audit", "s3://gone-1", "s3://audited", "s3://gone-2", "--topic", topic.topic)
    assert code == 4
    (alert,) = [one for one in topic.taken() if one["Subject"] == "S3 audit failed"]
    assert "no bucket named 'gone-1'" in alert["Message"]
    assert "no bucket named 'gone-2'" in alert["Message"]


@pytest.mark.parametrize(("acl", "code"), [("private", 1), ("public-read", 3)])
def test_alert_that_is_not_delivered_hides_no_result(run: Run, stub: StubServer, acl: str, code: int) -> None:
    stub.put("audited", "a", b"x", acl=acl)
    absent = "arn:aws:sns:us-east-1:123456789012:not-there"
    chat = made()
    refused = ("--topic", absent) if code == 3 else ("--event-bus", "not-there", "--region", "us-east-1")
    channels = (*refused, "--chat-topic", chat.topic)
    found, out, err = run("audit", "s3://audited", "--only", "O02", "--format", "json", *channels)
    assert (found, json.loads(out)["complete"]) == (code, True)
    assert "auditor: an alert or event was not sent: " in err
    assert len(chat.taken()) == (code == 3), "the other channel is used"


def test_verification_sends_an_alert_where_bytes_differ(run: Run, stub: StubServer) -> None:
    topic = made()
    stub.put("audited", "a", b"x")
    ledger = ("--ledger", "sqlite:digests.db")
    assert run("hash", "s3://audited", *ledger)[0] == 0
    verify = ("verify", "s3://audited", *ledger, "--topic", topic.topic)
    assert run(*verify)[0] == 0
    assert topic.taken() == []
    stub.world.buckets["audited"].objects.versions("a")[0].body = b"y"
    assert run(*verify)[0] == 3
    (alert,) = topic.taken()
    assert alert["Subject"] == "S3 verification of audited: 1 mismatch"
    assert alert["Message"].startswith("The verification of s3://audited/ found 1 mismatch.\n")


def test_estate_sends_one_alert_and_a_quiet_one_none(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moto_url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for service in ("SNS", "SQS"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", moto_url)
    inbox = made()
    with AccountsServer() as server:
        server.give(OWN, "first", "second", "third")
        server.put("first", "open", b"x", acl="public-read")
        server.refused.add("second")
        arguments = ("audit", "--all-buckets", "--only", "O02", "--topic", inbox.topic, "--endpoint-url", server.url)
        assert main(arguments) == 4
        (alert,) = inbox.taken()
        line = "3 buckets in 1 account = 2 audited + 0 excluded + 1 hole"
        assert alert["Subject"] == f"S3 audit: {line}"
        message = alert["Message"]
        assert message.startswith(f"{line}.")
        assert "- second: the listing of s3://second failed" in message
        assert "- The audit of s3://first/: 1 object exposed; 1 finding (1 high)." in message
        assert "third" not in message
        assert "index.html" in message
        server.refused.clear()
        assert main(arguments) == 3
        assert inbox.taken() == []
