"""The worker on ElasticMQ, a queue that is neither ours nor moto's: visibility, redrive, batches and their limits.

https://github.com/softwaremill/elasticmq
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import boto3
import pytest

from auditor.aws.connection import Connection
from auditor.aws.sqs import Outgoing, open_queue
from auditor.config.settings import Settings
from auditor.hashing.queue.message import MAX_BODY, HashTask, encode, pack
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.loop import Pace, Worker, open_processor
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger import open_ledger
from auditor.model.object import ObjectRef
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine
from tests.support.chaos import waiting
from tests.support.paths import ROOT
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import latency
from tests.system.e2e.queues import message

JARS: Final = Path(os.environ.get("ELASTICMQ_JARS") or ROOT / ".build" / "elasticmq")
_UP_SECONDS: Final = 60.0


@contextmanager
def elasticmq(log: Path) -> Iterator[str]:
    """Skips where there is no Java, or no ElasticMQ."""
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
        "aws.region": "us-east-1",
        "aws.accountId": "123456789012",
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with elasticmq(tmp_path_factory.mktemp("elasticmq") / "server.log") as url:
        yield url


@pytest.fixture
def sqs(server: str) -> Any:
    return boto3.client("sqs", endpoint_url=server)


@pytest.fixture
def dead(sqs: Any) -> str:
    url: str = sqs.create_queue(QueueName=f"dead-{uuid4().hex}")["QueueUrl"]
    return url


@pytest.fixture
def queue(sqs: Any, dead: str) -> str:
    """A queue that gives a message out twice, and then puts it away."""
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2})
    attributes = {"RedrivePolicy": policy, "VisibilityTimeout": "1"}
    url: str = sqs.create_queue(QueueName=f"hash-{uuid4().hex}", Attributes=attributes)["QueueUrl"]
    return url


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'ledger.db'}"


@asynccontextmanager
async def processing(stub: StubServer, queue: str, ledger: str, **settings: Any) -> AsyncIterator[Processor]:
    def engine(bucket: str) -> AbstractAsyncContextManager[Engine]:
        connection = Connection(bucket=bucket, region="us-east-1", endpoint_url=stub.url, concurrency=16)
        return ENGINES["direct"](connection)

    places = Settings(queue=queue, ledger=ledger)
    async with open_processor(places, WorkerOptions(**settings), engine) as processor:
        yield processor


async def worked(processor: Processor, pace: Pace | None = None) -> Counts:
    return await Worker(processor, pace or Pace(idle=2, poll=1)).run()


def put(stub: StubServer, count: int, size: int = 1000) -> dict[HashTask, bytes]:
    found = {}
    for number in range(count):
        data = f"{number:08}".encode() * (size // 8)
        item = stub.put("audited", f"key-{number:05}", data)
        found[HashTask(item.key, None, item.etag, item.size)] = data
    return found


async def digests(ledger: str, tasks: list[HashTask]) -> list[str | None]:
    refs = [ObjectRef(task.key, task.etag, task.size, "") for task in tasks]
    async with open_ledger(ledger) as opened:
        return [found.get("sha256") for found in await opened.known("audited", refs, ["sha256"])]


def letters(sqs: Any, dead: str) -> list[tuple[str, str | None]]:
    """Body and reason of each letter."""
    found: list[tuple[str, str | None]] = []
    while messages := sqs.receive_message(
        QueueUrl=dead, MaxNumberOfMessages=10, VisibilityTimeout=60, MessageAttributeNames=["All"]
    ).get("Messages"):
        for one in messages:
            reason = one.get("MessageAttributes", {}).get("reason")
            found.append((one["Body"], reason and reason["StringValue"]))
    return found


async def test_packed_objects_are_hashed_and_the_queue_is_empty(
    stub: StubServer, sqs: Any, queue: str, dead: str, ledger: str
) -> None:
    objects = put(stub, 450)
    async with open_queue(queue) as opened:
        refused = await opened.send([Outgoing(encode(one)) for one in pack("run", "audited", ("sha256",), objects)])
    assert refused == []
    async with processing(stub, queue, ledger) as processor:
        assert await worked(processor) == Counts(messages=5, hashed=450)
    assert await digests(ledger, list(objects)) == [hashlib.sha256(data).hexdigest() for data in objects.values()]
    assert (waiting(sqs, queue), waiting(sqs, dead)) == (0, 0)


async def test_message_in_hand_stays_hidden_however_long_it_takes(
    stub: StubServer, sqs: Any, queue: str, ledger: str
) -> None:
    (task,) = put(stub, 1)
    stub.faults = [latency(3.5)]
    sqs.send_message(QueueUrl=queue, MessageBody=message("audited", task))
    async with processing(stub, queue, ledger) as processor:
        work = asyncio.create_task(worked(processor, Pace(idle=1, poll=1, visibility=1, heartbeat=0.3)))
        await asyncio.sleep(2.5)
        received = await asyncio.to_thread(sqs.receive_message, QueueUrl=queue)
        assert not received.get("Messages")
        assert await work == Counts(messages=1, hashed=1)


async def test_poison_among_good_ones_goes_to_the_dead_letters_with_its_reason(
    stub: StubServer, sqs: Any, queue: str, dead: str, ledger: str
) -> None:
    (task,) = put(stub, 1)
    good = message("audited", task)
    poison = {
        "poison": "the body is not JSON",
        good.replace('"v":1', '"v":2'): "field v is not 1, the only version known",
    }
    for body in (*poison, good):
        sqs.send_message(QueueUrl=queue, MessageBody=body)
    async with processing(stub, queue, ledger) as processor:
        assert await worked(processor) == Counts(messages=3, hashed=1, failed=2, dead_lettered=2)
    assert dict(letters(sqs, dead)) == poison
    assert waiting(sqs, queue) == 0


async def test_object_that_fails_comes_again_after_its_delay_and_then_to_the_dead_letters(
    stub: StubServer, sqs: Any, queue: str, dead: str, ledger: str
) -> None:
    (task,) = put(stub, 1)
    stub.world.buckets["audited"].objects.versions(task.key)[0].deny.add("get")
    body = message("audited", task)
    sqs.send_message(QueueUrl=queue, MessageBody=body)
    async with processing(stub, queue, ledger, max_attempts=3, retry_base=1.0) as processor:
        assert await worked(processor) == Counts(messages=3, resent=2, failed=1, dead_lettered=1)
    assert letters(sqs, dead) == [(body, "AccessDenied")]


async def test_batches_keep_within_what_the_queue_takes(sqs: Any, queue: str) -> None:
    bodies = [f"{number:04}" + "x" * (MAX_BODY - 4) for number in range(13)]
    async with open_queue(queue) as opened:
        assert await opened.send([Outgoing(body) for body in bodies]) == []
        small = [Outgoing(f"small {number}", delay=900) for number in range(25)]
        assert await opened.send(small) == []
    found = sqs.get_queue_attributes(
        QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
    )["Attributes"]
    assert found == {"ApproximateNumberOfMessages": "13", "ApproximateNumberOfMessagesDelayed": "25"}
