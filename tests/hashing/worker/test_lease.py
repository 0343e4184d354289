"""Large objects under a lease: one worker at a time, a checkpoint for the next, nothing written without the lease."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from auditor.errors import CallFailed, LedgerError
from auditor.hashing.queue.message import decode
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.ledger.leases import Held, Lease, Work
from auditor.model.object import ObjectRef
from auditor.s3.engines.base import Body, Span
from auditor.s3.engines.pool import EnginePool
from tests.conformance.memory import MemoryBody
from tests.support.fakes.hashing import Buckets, MemoryQueue, Store, etag_of, message_of, no_pause
from tests.support.fakes.ledger import Hooked

DATA = bytes(range(256)) * 4096
WORK = Work(bucket="bucket", key="key", version_id=None, etag=etag_of(DATA), algorithms=("sha256",))
SETTINGS = WorkerOptions(large=1000, buffer_size=128 * 1024, save_seconds=0.0, lease_seconds=300)


@dataclass(slots=True)
class Watched(Store):
    """Calls `reading` with the number of each read of a buffer."""

    reading: Callable[[int], object] = lambda nth: None
    fills: int = 0

    @asynccontextmanager
    async def _get(self, key: str, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
        store = self

        class Counted(MemoryBody):
            async def readinto(self, buffer: memoryview) -> int:
                store.fills += 1
                if hasattr(found := store.reading(store.fills), "__await__"):
                    await found
                return await MemoryBody.readinto(self, buffer)

        async with Store._get(self, key, etag, span) as body:
            assert isinstance(body, MemoryBody)
            yield Counted(body.data, body.length, body.etag)


@dataclass(slots=True)
class Bench:
    """A worker with one large object, and seconds that pass only when a test says so."""

    ledger: Ledger
    store: Watched = field(default_factory=lambda: Watched({"key": DATA}))
    queue: MemoryQueue = field(default_factory=lambda: MemoryQueue(MemoryQueue()))
    now: float = 1_000_000.0

    async def process(self, ledger: Ledger | None = None, attempts: int = 0) -> tuple[Counts, int | None]:
        engines = EnginePool(Buckets(bucket=self.store))
        used = ledger or self.ledger
        processor = Processor(
            self.queue, self.queue.dead_letters, used, engines, SETTINGS, sleep=no_pause, clock=lambda: self.now
        )
        self.queue.put(message_of(self.store, "key", attempts=attempts))
        (received,) = await self.queue.receive(1, wait=0, visibility=5400)
        done = await processor.process(received)
        await self.queue.delete([received.receipt])
        return done.counts, done.retry_after

    async def claim(self, seconds: float = 300) -> Lease:
        lease = await self.ledger.claim(WORK, "other", seconds)
        assert isinstance(lease, Lease), "another has it"
        return lease

    async def recorded(self) -> bool:
        return bool((await self.ledger.known("bucket", [ObjectRef("key", WORK.etag, len(DATA), "")], ["sha256"]))[0])


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made: list[Bench] = []
    async with open_ledger("sqlite::memory:", clock=lambda: made[0].now) as ledger:
        made.append(Bench(ledger))
        yield made[0]


async def test_hashed_object_is_recorded_and_leaves_no_lease_and_no_checkpoint(bench: Bench) -> None:
    assert await bench.process() == (Counts(messages=1, hashed=1), None)
    assert (await bench.recorded(), (await bench.claim()).checkpoint) == (True, None)


async def test_object_under_another_lease_waits_until_that_ends(bench: Bench) -> None:
    await bench.claim()
    bench.now += 100.5
    assert await bench.process() == (Counts(messages=1, waiting=1), 200)
    assert bench.store.reads == []


async def test_crashed_workers_object_continues_at_its_last_checkpoint(bench: Bench) -> None:
    bench.store.reading = lambda nth: cut() if nth == 5 else None
    counts, _ = await bench.process(attempts=2)
    assert counts == Counts(messages=1, resent=1)
    (task,) = decode(bench.queue.sent[0].body).tasks
    assert (task.attempts, task.hops) == (1, 1), "an attempt with progress is a hop, and its failure the first attempt"
    crashed = await bench.claim()
    assert crashed.checkpoint is not None
    assert crashed.checkpoint["bytes"] == 4 * 128 * 1024
    bench.now += 301
    bench.store.reading, bench.store.fills = (lambda nth: None), 0
    assert (await bench.process())[0] == Counts(messages=1, hashed=1)
    assert bench.store.fills <= 5


def cut() -> None:
    raise CallFailed("GetObject", "AccessDenied", 403)


async def test_failure_without_progress_counts_as_an_attempt(bench: Bench) -> None:
    bench.store.reading = lambda nth: cut()
    assert (await bench.process(attempts=2))[0] == Counts(messages=1, resent=1)
    (task,) = decode(bench.queue.sent[0].body).tasks
    assert (task.attempts, task.hops) == (3, 0)
    assert (await bench.claim()).checkpoint is None


@pytest.mark.parametrize("nth", [3, 9], ids=["in mid-read", "before it is recorded"])
async def test_lost_lease_ends_the_work_and_writes_nothing(bench: Bench, nth: int) -> None:
    """The ninth read asks whether the body goes on after its end."""
    taken: list[Lease] = []

    async def take() -> None:
        bench.now += 301
        taken.append(await bench.claim())

    bench.store.reading = lambda number: take() if number == nth else None
    assert await bench.process() == (Counts(messages=1, waiting=1), 300)
    assert (await bench.recorded(), bench.store.fills <= nth + 2) == (False, True)
    assert isinstance(await bench.ledger.claim(WORK, "third", 1), Held), "the one that lost it released it"
    assert (await bench.ledger.renew(taken[0], 300)).checkpoint == taken[0].checkpoint


async def test_each_save_extends_the_lease(bench: Bench) -> None:
    async def pass_on() -> None:
        bench.now += 200
        assert isinstance(await bench.ledger.claim(WORK, "thief", 300), Held)

    bench.store.reading = lambda nth: pass_on() if nth < 9 else None
    assert (await bench.process())[0] == Counts(messages=1, hashed=1)


@pytest.mark.parametrize(("passed", "kept"), [(299, True), (300, False)])
async def test_ledger_that_fails_during_the_hashing_ends_it_only_when_the_lease_expires(
    bench: Bench, passed: int, kept: bool
) -> None:
    troubles = [LedgerError("throttled")] * 2

    def hook(name: str) -> None:
        if name == "renew" and troubles:
            raise troubles.pop()

    async def pass_on() -> None:
        bench.now += passed

    bench.store.reading = lambda nth: pass_on() if nth == 2 else None
    counts, again = await bench.process(Hooked(bench.ledger, hook))
    assert (counts, again is None) == ((Counts(messages=1, hashed=1), True) if kept else (Counts(messages=1), False))
    assert await bench.recorded() is kept
