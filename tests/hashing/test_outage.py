"""A ledger that refuses for an hour: nothing is lost, and nothing is put away, in the time of a fake clock."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from auditor.aio.stop import Stop
from auditor.errors import LedgerError
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.outage import LONGEST, LedgerPatience, patient
from auditor.hashing.status import HashStatusFinder
from auditor.hashing.worker.loop import Pace, Worker
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import TOO_MANY_RECEIVES, Processor
from auditor.lambdas.hashing import HashingFunction
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.object import Evidence, ObjectRef, Skipped
from auditor.s3.engines.pool import EnginePool
from tests.support.fakes.hashing import (
    Buckets,
    MemoryQueue,
    Store,
    digests_in,
    etag_of,
    message_of,
    no_pause,
    sha256_of,
)
from tests.support.fakes.ledger import Hooked

HOUR: Final = 3600.0
REFUSED: Final = LedgerError("the ledger table 'hashes' cannot be reached")
PACE: Final = Pace(messages=8, idle=20, visibility=12 * 3600)
"""The heartbeat, which renews the visibility, beats in real time only."""


@dataclass(slots=True)
class Outage:
    """Refuses the calls of an hour of the queue's time. It begins after a number of answered calls."""

    queue: MemoryQueue
    answers: int
    seconds: float = HOUR
    refused: int = 0
    _until: float | None = field(default=None, init=False)

    def __call__(self, name: str) -> None:
        self.answers -= 1
        if self.answers >= 0:
            return
        if self._until is None:
            self._until = self.queue.time + self.seconds
        if self.queue.time < self._until:
            self.refused += 1
            raise REFUSED

    @property
    def over(self) -> bool:
        return self._until is not None and self.queue.time >= self._until


@dataclass(slots=True)
class Bench:
    """A queue with a time of its own, a bucket in memory, a ledger that can refuse."""

    queue: MemoryQueue
    dead: MemoryQueue
    store: Store
    ledger: Ledger
    outage: Outage
    on_sleep: Callable[[], object] = lambda: None

    def put(self, number: int) -> None:
        self.store.objects[f"key-{number}"] = f"{number}".encode() * 100
        self.queue.put(message_of(self.store, f"key-{number}"))

    def processor(self, *, has_deadline: bool = False) -> Processor:
        hooked, engines = Hooked(self.ledger, self.outage), EnginePool(Buckets(bucket=self.store))
        options = WorkerOptions(has_deadline=has_deadline)
        return Processor(self.queue, self.dead, hooked, engines, options, sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.queue.time += seconds
        self.on_sleep()
        await no_pause(seconds)

    async def settled(self) -> None:
        """Check that everything is in the ledger with its digest, and nothing on a queue."""
        assert await digests_in(self.ledger, self.store) == sha256_of(self.store.objects)
        assert (self.queue.left, self.dead.sent) == ([], [])


@pytest.fixture(params=[None, 3], ids=lambda limit: f"{limit} receipts")
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    dead = MemoryQueue()
    queue = MemoryQueue(dead, request.param)
    async with open_ledger("sqlite::memory:") as ledger:
        yield Bench(queue, dead, Store(), ledger, Outage(queue, answers=12))


async def invoked(function: HashingFunction, queue: MemoryQueue) -> None:
    """Deliver a batch as Lambda's poller does, and delete what did not fail."""
    batch = await queue.receive(10, wait=20, visibility=5400)
    records = [
        {
            "messageId": one.id,
            "receiptHandle": one.receipt,
            "body": one.body,
            "attributes": {"ApproximateReceiveCount": str(one.receive_count)},
        }
        for one in batch
    ]
    failed = (await function.handle({"Records": records}))["batchItemFailures"]
    ids = {one["itemIdentifier"] for one in failed}
    await queue.delete([one.receipt for one in batch if one.id not in ids])


async def test_function_loses_nothing_and_puts_nothing_away(bench: Bench) -> None:
    function, calls, number = HashingFunction({}), 0, 0
    function._processor = bench.processor(has_deadline=True)
    while bench.queue.left or not bench.outage.over:
        if number < 40 or (number < 100 and not bench.outage.over):
            bench.put(number)  # messages keep coming
            number += 1
        await invoked(function, bench.queue)
        bench.queue.time += 20.0
        calls += 1
        assert calls < 1000, "messages go round and round"
    assert bench.outage.refused > 100
    assert all(seconds <= 900 for _, seconds in bench.queue.hidden)
    await bench.settled()


async def test_worker_waits_with_its_messages_in_hand(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(60):
        bench.put(number)
    worker = Worker(bench.processor(), PACE, clock=lambda: bench.queue.time)
    bench.queue.busy = lambda: worker.in_hand > 0
    counts = await worker.run()
    assert (counts.messages, counts.hashed, counts.failed) == (60, 60, 0)
    assert bench.outage.over
    assert bench.queue.hidden == [], "no message went back to the queue"
    said = [message for message in caplog.messages if "the ledger" in message]
    assert (str(REFUSED) in said[0], "the ledger answers again" in caplog.text) == (True, True)
    assert len(said) < 62, "the reason is said each minute"
    await bench.settled()


@pytest.mark.parametrize("stopped", [True, False])
async def test_worker_that_is_stopped_in_an_outage_or_has_waited_too_long_leaves_its_messages(
    bench: Bench, stopped: bool
) -> None:
    for number in range(60):
        bench.put(number)
    worker = Worker(bench.processor(), PACE, clock=lambda: bench.queue.time)
    bench.queue.busy = lambda: worker.in_hand > 0
    bench.outage.seconds = 10**9
    if stopped:
        bench.on_sleep = worker.stop
    with pytest.raises(LedgerError, match="cannot be reached"):
        await worker.run()
    assert (bench.queue.time < HOUR) if stopped else (bench.queue.time >= LONGEST)
    assert bench.dead.sent == []
    assert len(await digests_in(bench.ledger, bench.store)) + len(bench.queue.left) == 60


async def test_run_in_this_process_waits_and_reads_no_object_twice(bench: Bench) -> None:
    bench.store.objects = {f"key-{number}": b"x" * number for number in range(50)}
    bench.outage.answers = 30
    ledger = patient(Hooked(bench.ledger, bench.outage), Stop(), LedgerPatience(bench.sleep))
    hasher = InProcessHasher(bench.store, ledger, ["sha256"], HashOptions(bucket="bucket"))
    finder = HashStatusFinder("bucket", ledger, ["sha256"], hasher)
    refs = [ObjectRef(key, etag_of(data), len(data), "") for key, data in bench.store.objects.items()]
    none = Skipped("not asked")
    found = await finder.find([Evidence(ref, none, none) for ref in refs])
    assert [status.state for status in found if status is not None] == ["hashed_now"] * 50
    assert bench.outage.over
    assert sorted(bench.store.reads) == sorted(bench.store.objects)
    await bench.settled()


async def test_ledger_that_never_answered_is_not_waited_for(bench: Bench) -> None:
    bench.outage.answers = 0
    bench.put(1)
    with pytest.raises(LedgerError, match="cannot be reached"):
        await Worker(bench.processor(), clock=lambda: bench.queue.time).run()
    assert bench.queue.time < HOUR


async def test_message_whose_workers_die_becomes_a_dead_letter_with_a_reason() -> None:
    dead = MemoryQueue()
    queue = MemoryQueue(dead, 3)
    store = Store({"key": b"data"})
    queue.put(message_of(store, "key"))
    async with open_ledger("sqlite::memory:") as ledger, EnginePool(Buckets(bucket=store)) as engines:
        for _ in range(2):
            assert await queue.receive(10, wait=20, visibility=30)
            queue.time += 30.0
        function = HashingFunction({})
        function._processor = Processor(queue, dead, ledger, engines, WorkerOptions(has_deadline=True))
        await invoked(function, queue)
    (letter,) = dead.sent
    assert letter.attributes["reason"] == TOO_MANY_RECEIVES
    assert json.loads(letter.body)["objects"][0]["key"] == "key"
    assert queue.left == []
