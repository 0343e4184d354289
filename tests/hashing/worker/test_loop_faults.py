"""With any fault of the worker, its ledger holds the digests that are computed here, and no others."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from auditor.aws.connection import Connection
from auditor.hashing.queue.message import HashTask, encode, pack
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.loop import Pace, Worker
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.object import ObjectRef
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine
from auditor.s3.engines.pool import EnginePool
from tests.support.fakes.hashing import MemoryQueue, no_pause
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import CUT, RESET, SLOW_DOWN, Fault, random_faults

KIB = 1024
SETTINGS = WorkerOptions(large=1024 * KIB, buffer_size=64 * KIB, save_seconds=0.0, max_attempts=12, retry_base=8.0)
SIZES = (0, 1, 63, 64, 65, 10_000, 64 * KIB, 300 * KIB, 1024 * KIB, 3000 * KIB + 5)


@dataclass(slots=True)
class Bench:
    """The parts of a scenario. expected: digest of the bytes by key and ETag."""

    stub: StubServer
    queue: MemoryQueue
    ledger: Ledger
    chance: random.Random
    expected: dict[tuple[str, str], str] = field(default_factory=dict)
    sizes: dict[tuple[str, str], int] = field(default_factory=dict)

    def put(self, key: str, data: bytes) -> HashTask:
        item = self.stub.put("audited", key, data)
        self.expected[key, item.etag] = hashlib.sha256(data).hexdigest()
        self.sizes[key, item.etag] = item.size
        return HashTask(key, None, item.etag, item.size)

    def objects(self) -> list[HashTask]:
        return [self.put(f"key-{number}", self.chance.randbytes(size)) for number, size in enumerate(SIZES)]

    def send(self, *tasks: HashTask) -> None:
        for message in pack("run", "audited", ("sha256",), tasks):
            self.queue.put(encode(message))

    async def recorded(self) -> dict[tuple[str, str], str]:
        refs = [ObjectRef(key, etag, size, "") for (key, etag), size in self.sizes.items()]
        found = await self.ledger.known("audited", refs, ["sha256"])
        return {(ref.key, ref.etag): one["sha256"] for ref, one in zip(refs, found, strict=True) if one}

    async def work(self) -> Counts:
        def engine(bucket: str) -> AbstractAsyncContextManager[Engine]:
            return ENGINES["direct"](
                Connection(bucket=bucket, region="us-east-1", endpoint_url=self.stub.url, concurrency=16)
            )

        dead = self.queue.dead_letters
        async with EnginePool(engine) as engines:

            def clock() -> float:
                return self.queue.time

            processor = Processor(self.queue, dead, self.ledger, engines, SETTINGS, sleep=no_pause, clock=clock)
            worker = Worker(processor, Pace(idle=20), clock=clock)
            self.queue.busy = lambda: worker.in_hand > 0
            return await worker.run()

    @property
    def letters(self) -> list[str]:
        assert self.queue.dead_letters is not None
        return [letter.attributes["reason"] for letter in self.queue.dead_letters.sent]


@pytest.fixture
async def bench(stub: StubServer, tmp_path: Path) -> AsyncIterator[Bench]:
    queue = MemoryQueue(MemoryQueue())
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}", clock=lambda: queue.time) as ledger:
        yield Bench(stub, queue, ledger, random.Random(11))


def settled(bench: Bench) -> None:
    assert bench.queue.left == []
    assert bench.letters == []


@pytest.mark.parametrize("faulty", [False, True])
async def test_duplicates_in_any_order_and_three_of_ten_answers_that_fail(bench: Bench, faulty: bool) -> None:
    if faulty:
        kinds = (SLOW_DOWN, CUT, RESET)
        bench.stub.faults = [random_faults(0.3, seed=5, kinds=kinds, operations={"GetObject"})]
    tasks = bench.objects() * (1 if faulty else 3)
    bench.chance.shuffle(tasks)
    for start in range(0, len(tasks), 4):
        bench.send(*tasks[start : start + 4])
    assert (await bench.work()).hashed >= len(SIZES)
    assert await bench.recorded() == bench.expected
    settled(bench)
    for key, _ in bench.expected:
        assert [event.what for event in await bench.ledger.history("audited", key)] == ["recorded"]


@pytest.mark.parametrize("size", [200_000, 3_000_000], ids=["small", "large"])
@pytest.mark.parametrize("change", ["overwritten", "deleted"])
async def test_object_that_is_changed_in_mid_read_is_never_recorded(bench: Bench, change: str, size: int) -> None:
    data = bench.chance.randbytes(size)
    task = bench.put("changing", data)
    others = bench.objects()
    asked = 0

    def plan(operation: str, key: str, nth: int) -> Fault | None:
        nonlocal asked
        if operation != "GetObject" or key != "changing":
            return None
        asked += 1
        if asked == 1:
            return CUT
        if change == "overwritten":
            bench.stub.put("audited", "changing", data[::-1])
        else:
            bench.stub.world.buckets["audited"].delete("changing")
        return None

    bench.stub.faults = [plan]
    bench.send(*others[:5], task, *others[5:])
    counts = await bench.work()
    assert (counts.superseded, counts.hashed, asked) == (1, len(SIZES), 2)
    del bench.expected["changing", task.etag]
    assert await bench.recorded() == bench.expected
    settled(bench)
