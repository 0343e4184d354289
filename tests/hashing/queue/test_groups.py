"""Each message is in the group of its bucket, so that the backlog of one bucket delays no other (SQS's fair queues)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import uuid4

import boto3
import pytest

from auditor.aws.sqs import Received, SqsQueue, open_queue
from auditor.errors import CallFailed, LedgerError
from auditor.hashing.queue.send import Dispatcher
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger import open_ledger
from auditor.model.object import ObjectRef
from auditor.s3.engines.pool import EnginePool
from tests.support.fakes.hashing import Buckets, Store, message_of, no_pause
from tests.support.fakes.ledger import Hooked, failing
from tests.support.object_events import event_bridge

LONG: Final = "b" * 129
GROUPS: Final = {"bucket": "bucket", "b" * 128: "b" * 128, LONG: hashlib.sha256(LONG.encode()).hexdigest()}


@pytest.fixture
def sqs(moto_url: str) -> Any:
    return boto3.client("sqs", endpoint_url=moto_url)


@pytest.fixture
async def queue(sqs: Any) -> AsyncIterator[SqsQueue]:
    async with open_queue(sqs.create_queue(QueueName=uuid4().hex)["QueueUrl"]) as opened:
        yield opened


@pytest.fixture
async def dead(sqs: Any) -> AsyncIterator[SqsQueue]:
    async with open_queue(sqs.create_queue(QueueName=uuid4().hex)["QueueUrl"]) as opened:
        yield opened


def groups(sqs: Any, queue: SqsQueue) -> list[str | None]:
    """The groups of the messages that can be received from a queue."""
    answer = sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10, AttributeNames=["All"])
    return [message["Attributes"].get("MessageGroupId") for message in answer.get("Messages", [])]


def received(body: str, count: int = 1) -> Received:
    return Received("id", "receipt", body, count)


async def test_messages_of_an_audit_are_in_the_group_of_their_bucket(queue: SqsQueue, sqs: Any) -> None:
    for bucket, group in GROUPS.items():
        dispatcher = Dispatcher(queue, "run", bucket, ("sha256",))
        dispatcher.add(ObjectRef(f"key-{n}", "etag", 1, "2026-01-02T03:04:05Z") for n in range(101))
        await dispatcher.close()
        assert groups(sqs, queue) == [group] * 2


@pytest.mark.parametrize("attempts", [0, 4], ids=["sent again", "dead letter"])
async def test_objects_that_fail_stay_in_the_group_of_their_bucket(
    queue: SqsQueue, dead: SqsQueue, sqs: Any, attempts: int
) -> None:
    store = Store({"key": b"data"}, failures={"key": [CallFailed("GetObject", "AccessDenied", 403)]})
    body = message_of(store, "key", attempts=attempts, bucket=LONG)
    async with open_ledger("sqlite::memory:") as ledger, EnginePool(Buckets(**{LONG: store})) as engines:
        options = WorkerOptions(retry_base=0.0)
        await Processor(queue, dead, ledger, engines, options, sleep=no_pause).process(received(body))
    assert groups(sqs, dead if attempts else queue) == [GROUPS[LONG]]


@pytest.mark.parametrize("form", ["own", "event", "malformed"])
async def test_message_that_is_sent_as_it_came_is_in_the_group_of_its_bucket(
    queue: SqsQueue, dead: SqsQueue, sqs: Any, form: str
) -> None:
    store = Store({"key": b"data"})
    body = {
        "own": message_of(store, "key"),
        "event": event_bridge("key", "bucket", kind="Object Created"),
        "malformed": "{}",
    }[form]
    group = None if form == "malformed" else "bucket"
    async with open_ledger("sqlite::memory:") as ledger, EnginePool(Buckets(bucket=store)) as engines:
        refusing = Hooked(ledger, failing(LedgerError("the ledger is gone")))
        processor = Processor(queue, dead, refusing, engines, WorkerOptions(retry_base=0.0), sleep=no_pause)
        await processor.process(received(body, 4))
        queue.max_receives = 5
        await processor.process(received(body, 5))
    assert groups(sqs, queue) == ([] if form == "malformed" else [group])
    assert groups(sqs, dead) == [group] * (2 if form == "malformed" else 1)
