"""The deployed queues, or the same ones on ElasticMQ, a separate server with the SQS API.

https://github.com/softwaremill/elasticmq
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import boto3
import pytest

from deploy.options import ROOT
from tests.system.e2e.deployment import Deployment, Source
from tests.system.e2e.environment import ACCOUNT, REGION, Function

JARS: Final = Path(os.environ.get("ELASTICMQ_JARS") or ROOT / ".build" / "elasticmq")
_KEPT: Final = ("VisibilityTimeout", "RedrivePolicy", "MessageRetentionPeriod")
_UP_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Queues:
    """sqs: a client. moved: the name of a deployed queue, and the URL where it is instead."""

    sqs: Any
    moved: dict[str, str] = field(default_factory=dict)

    def at(self, url: str) -> str:
        """By the name: a URL's host is not the same in every answer."""
        return self.moved.get(url.rpartition("/")[2], url)

    def of_function(self, function: Function) -> Function:
        """As deployed, but for the queues that its variables name."""
        return replace(function, variables={name: self.at(value) for name, value in function.variables.items()})

    def of_mapping(self, mapping: Source) -> Source:
        return replace(mapping, queue_url=self.at(mapping.queue_url))

    def taken(self, url: str) -> list[str]:
        """The bodies of all visible messages of a deployed queue, which are deleted."""
        return [body for body, _ in self.letters(url)]

    def letters(self, url: str) -> list[tuple[str, str | None]]:
        """The same, with the reason beside each: None where there is none."""
        letters: list[tuple[str, str | None]] = []
        while found := self._receive(url):
            attributes = [one.get("MessageAttributes", {}) for one in found]
            reasons = [one["reason"]["StringValue"] if "reason" in one else None for one in attributes]
            letters += zip((one["Body"] for one in found), reasons, strict=True)
        return letters

    def _receive(self, url: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.sqs.receive_message(
            QueueUrl=self.at(url), MaxNumberOfMessages=10, WaitTimeSeconds=0, MessageAttributeNames=["All"]
        ).get("Messages", [])
        for one in found:
            self.sqs.delete_message(QueueUrl=self.at(url), ReceiptHandle=one["ReceiptHandle"])
        return found


@contextmanager
def copied(deployment: Deployment, url: str) -> Iterator[Queues]:
    """The deployed queues on the server at `url`, with what they were deployed with; gone at the end."""
    original, sqs = deployment.client("sqs"), _client(url)
    moved: dict[str, str] = {}
    policies: dict[str, str] = {}
    for found in original.list_queues()["QueueUrls"]:
        attributes = original.get_queue_attributes(QueueUrl=found, AttributeNames=["All"])["Attributes"]
        kept = {name: attributes[name] for name in _KEPT if name in attributes}
        policy = kept.pop("RedrivePolicy", None)
        name = found.rpartition("/")[2]
        moved[name] = sqs.create_queue(QueueName=name, Attributes=kept)["QueueUrl"]
        if policy:
            policies[moved[name]] = policy
    for made, policy in policies.items():  # the queue that one names has to be there before it
        sqs.set_queue_attributes(QueueUrl=made, Attributes={"RedrivePolicy": policy})
    yield Queues(sqs, moved)
    for made in moved.values():
        sqs.delete_queue(QueueUrl=made)


@contextmanager
def elasticmq(log: Path) -> Iterator[str]:
    """ElasticMQ in a process of its own, on 127.0.0.1. Skips where there is no Java, or no ElasticMQ."""
    java = shutil.which("java")
    if java is None or not any(JARS.glob("elasticmq-server_*.jar")):
        pytest.skip("ElasticMQ is not here: it needs Java 17, and make elasticmq")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "rest-sqs.bind-hostname": "127.0.0.1",
        "rest-sqs.bind-port": port,
        "rest-stats.enabled": "false",
        "node-address.host": "127.0.0.1",
        "node-address.port": port,
        "aws.region": REGION,
        "aws.accountId": ACCOUNT,
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    command = [java, "-Xmx128m", *options, "-cp", f"{JARS}/*", "org.elasticmq.server.Main"]
    with log.open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, child, log)
            yield url
        finally:
            child.kill()
            child.wait()


def _wait_for(url: str, child: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _UP_SECONDS
    while time.monotonic() < until and child.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError as answer:  # it serves: this is no request of SQS's
            answer.close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"ElasticMQ did not start: {log.read_text()[-2000:]}")


def _client(url: str) -> Any:
    return boto3.Session("testing", "testing", region_name=REGION).client("sqs", endpoint_url=url)
