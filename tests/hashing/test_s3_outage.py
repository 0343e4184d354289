"""S3 that refuses everything: no object becomes a dead letter by that, and each gets its digest afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from auditor.cli.main import main
from auditor.errors import BucketError, CallFailed
from auditor.hashing.queue.message import decode
from auditor.hashing.worker.loop import Pace, Worker
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.lambdas.hashing import HashingFunction
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.s3.engines.base import Body, Engine, Span
from auditor.s3.engines.pool import EnginePool
from tests.hashing.test_outage import invoked
from tests.support.fakes.hashing import Buckets, MemoryQueue, Store, digests_in, message_of, no_pause, sha256_of
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import RESET, SLOW_DOWN, Fault

KEYS: Final = [f"key-{number:02}" for number in range(20)]
REFUSALS: Final = [("SlowDown", 503), ("Timeout", 0)]
DAY: Final = 86_400


@dataclass(slots=True)
class Refusing(Store):
    """A bucket that refuses every read until a time of the clock. heads: number of refused reads."""

    clock: Callable[[], float] = field(default=lambda: 0.0)
    until: float = 120.0
    refusal: CallFailed = field(default_factory=lambda: CallFailed("GetObject", "SlowDown", 503))

    @asynccontextmanager
    async def _get(self, key: str, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
        if self.clock() < self.until:
            self.reads.append(key)
            raise self.refusal
        async with Store._get(self, key, etag, span) as body:
            yield body


@dataclass(slots=True)
class Bench:
    """A queue with a time of its own, 20 objects in a bucket that refuses for 120 s, and a ledger."""

    queue: MemoryQueue
    dead: MemoryQueue
    store: Refusing
    ledger: Ledger

    def processor(self, opened: Callable[[str], AbstractAsyncContextManager[Engine]] | None = None) -> Processor:
        engines = EnginePool(opened or Buckets(bucket=self.store))
        options = WorkerOptions(has_deadline=True)
        return Processor(self.queue, self.dead, self.ledger, engines, options, sleep=no_pause)

    async def invoked(self, processor: Processor) -> None:
        """Deliver messages to the function until the queue has none, as Lambda's poller does."""
        function = HashingFunction({})
        function._processor = processor
        while self.queue.left:
            await invoked(function, self.queue)

    async def settled(self) -> None:
        """Check that each object has its digest, and that nothing is on a queue."""
        assert await digests_in(self.ledger, self.store) == sha256_of(self.store.objects)
        assert (self.queue.left, self.dead.sent) == ([], [])


@pytest.fixture(params=[None, 1, 3], ids=lambda limit: f"{limit} receipts")
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    dead = MemoryQueue()
    queue = MemoryQueue(dead, request.param)
    store = Refusing({key: key.encode() * 100 for key in KEYS}, clock=lambda: queue.time)
    queue.put(message_of(store, *KEYS))
    async with open_ledger("sqlite::memory:") as ledger:
        yield Bench(queue, dead, store, ledger)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one[0])
async def test_function_makes_no_dead_letter_of_what_s3_refuses_for_two_minutes(
    bench: Bench, refusal: tuple[str, int]
) -> None:
    bench.store.refusal = CallFailed("GetObject", *refusal)
    await bench.invoked(bench.processor())
    await bench.settled()
    assert {task.attempts for sent in bench.queue.sent for task in decode(sent.body).tasks} == {0}
    assert bench.queue.time < 400, "it goes on soon after the outage"


async def test_worker_makes_no_dead_letter_of_what_s3_refuses_for_two_minutes(bench: Bench) -> None:
    worker = Worker(bench.processor(), Pace(visibility=DAY), clock=lambda: bench.queue.time)
    bench.queue.busy = lambda: worker.in_hand > 0
    counts = await worker.run()
    assert (counts.hashed, counts.failed) == (20, 0)
    await bench.settled()


async def test_bucket_that_cannot_be_reached_at_first_costs_no_attempt(bench: Bench) -> None:
    @asynccontextmanager
    async def opened(bucket: str) -> AsyncIterator[Engine]:
        if bench.queue.time < bench.store.until:
            failure = CallFailed("HeadBucket", "ConnectionError")
            raise BucketError("S3 cannot be reached (ConnectionError)") from failure
        yield bench.store

    await bench.invoked(bench.processor(opened))
    await bench.settled()


async def test_denied_object_uses_up_its_attempts_beside_refused_ones(bench: Bench) -> None:
    """Its four re-sends take 75 s at most: less than the outage, which delays the others."""

    @dataclass(slots=True)
    class Denying(Refusing):
        @asynccontextmanager
        async def _get(self, key: str, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
            if key == KEYS[0]:
                raise CallFailed("GetObject", "AccessDenied", 403)
            async with Refusing._get(self, key, etag, span) as body:
                yield body

    denying = Denying(bench.store.objects, clock=bench.store.clock)
    await bench.invoked(bench.processor(Buckets(bucket=denying)))
    (letter,) = bench.dead.sent
    assert letter.attributes["reason"] == "AccessDenied"
    assert [task.key for task in decode(letter.body).tasks] == [KEYS[0]]
    assert len(await digests_in(bench.ledger, bench.store)) == 19


@pytest.mark.parametrize("bench", [3], indirect=True)
async def test_object_that_s3_refuses_for_days_becomes_a_dead_letter_with_its_reason(bench: Bench) -> None:
    bench.store.until = 99 * DAY
    await bench.invoked(bench.processor())
    assert DAY < bench.queue.time < 4 * DAY, "a queue keeps a message for four days, if nobody says otherwise"
    assert {letter.attributes["reason"] for letter in bench.dead.sent} == {"SlowDown"}
    assert sorted(task.key for letter in bench.dead.sent for task in decode(letter.body).tasks) == KEYS


@pytest.mark.parametrize("fault", [SLOW_DOWN, RESET], ids=["503", "reset"])
def test_hash_waits_for_s3_and_reads_each_object_then(
    stub: StubServer,
    tmp_path: Path,
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("AUDITOR_RETRY_ATTEMPTS", "3")
    for key in KEYS:
        stub.put(BUCKET, key, key.encode() * 100)

    def refuse(operation: str, key: str, nth: int) -> Fault | None:
        return fault if operation == "GetObject" and stub.count("GetObject") <= 3 * len(KEYS) else None

    stub.faults = [refuse]
    ledger = f"sqlite:{tmp_path / 'digests.db'}"
    code = main(["hash", f"s3://{BUCKET}", "--ledger", ledger, "--endpoint-url", stub.url])
    assert (code, "20 objects hashed now" in capsys.readouterr().out) == (0, True)
    told = [line for line in caplog.messages if "S3" in line]
    assert (len(told), "waiting for S3" in told[0], "answers again" in told[1]) == (2, True, True)
