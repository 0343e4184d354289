"""Objects that outlast a worker: their checkpoint stays in the ledger, the rest of the work on the queue."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from awscrt import checksums
from msgspec.structs import replace

from auditor.aio import stop as cutoff
from auditor.aio.stop import Stop
from auditor.hashing.digest import one_pass as onepass
from auditor.hashing.digest.result import Failed, Paused
from auditor.hashing.queue.message import HashTask, decode, encode, pack
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.message_hasher import after_pause
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger.base import Ledger
from auditor.ledger.leases import Work
from auditor.model.object import ObjectRef
from auditor.s3.engines.base import Body, Span
from tests.conformance.memory import MemoryBody
from tests.support.fakes.hashing import MemoryQueue, Store, etag_of, processor_of
from tests.support.fakes.ledger import versions_of

KIB = 1024
SIZE = 4 * 1024 * KIB + 77
DATA = random.Random(5).randbytes(SIZE)
ETAG = etag_of(DATA)
ALGORITHMS = ("sha256", "sha512", "sha1", "md5", "crc64nvme")
SETTINGS = WorkerOptions(large=512 * KIB, buffer_size=64 * KIB, has_deadline=True, max_hops=60, retry_base=8.0)
WORK = Work(bucket="bucket", key="big", version_id=None, etag=ETAG, algorithms=("sha256",))


class StopAfter(Stop):
    """A stop that is set after a number of questions, as a deadline anywhere inside the work."""

    def __init__(self, questions: int) -> None:
        super().__init__()
        self._left = questions
        self.is_set = self.__bool__

    def __bool__(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.fixture
def store() -> Store:
    return Store({"big": DATA, "small": b"small"})


Make = Callable[[WorkerOptions], Processor]


@pytest.fixture
def make(queue: MemoryQueue, ledger: Ledger, store: Store) -> Make:
    return lambda settings: processor_of(queue, ledger, store, settings)


def message(*tasks: HashTask, algorithms: tuple[str, ...] = ("sha256",)) -> str:
    (packed,) = pack("run", "bucket", algorithms, tasks)
    return encode(packed)


def big(*, attempts: int = 0, hops: int = 0) -> HashTask:
    return HashTask("big", None, ETAG, SIZE, attempts, hops)


async def digests(ledger: Ledger, algorithms: tuple[str, ...] = ("sha256",)) -> dict[str, str]:
    (found,) = await ledger.known("bucket", [ObjectRef("big", ETAG, SIZE, "")], algorithms)
    return dict(found)


def truth() -> dict[str, str]:
    whole = {name: hashlib.new(name, DATA).hexdigest() for name in ALGORITHMS[:4]}
    return whole | {"crc64nvme": f"{checksums.crc64nvme(DATA):016x}"}


async def drained(queue: MemoryQueue, processor: Processor, stop: Callable[[], Stop]) -> Counts:
    """Process each message in an invocation of its own, until the queue is empty."""
    counts = Counts()
    while queue.left:
        for received in await queue.receive(1, wait=900, visibility=5400):
            done = await processor.process(received, stop())
            counts += done.counts
            if done.retry_after is None:
                await queue.delete([received.receipt])
            else:
                await queue.hide(received.receipt, done.retry_after)
    return counts


async def test_object_over_many_deadlines_has_the_digests_of_one_pass(
    make: Make, queue: MemoryQueue, ledger: Ledger
) -> None:
    chance = random.Random(3)
    queue.put(message(big(), algorithms=ALGORITHMS))
    counts = await drained(queue, make(SETTINGS), lambda: StopAfter(chance.randrange(3, 7)))
    assert await digests(ledger, ALGORITHMS) == truth()
    assert counts.continued >= 10
    assert counts == Counts(messages=counts.continued + 1, continued=counts.continued, hashed=1)
    hops = [decode(sent.body).tasks[0].hops for sent in queue.sent]
    assert hops == list(range(1, counts.continued + 1))
    read = (await versions_of(ledger, "bucket", "big"))[-1].digests["sha256"].bytes_read
    # What was read ahead at a pause is read again: a few buffers each time.
    assert SIZE <= read <= SIZE + len(queue.sent) * 4 * SETTINGS.buffer_size


@pytest.mark.parametrize("has_deadline", [True, False])
async def test_small_objects_are_begun_at_a_stop_only_where_there_is_no_deadline(
    make: Make, queue: MemoryQueue, store: Store, has_deadline: bool
) -> None:
    stop = Stop()
    stop.set("the deadline is near")
    small = HashTask("small", None, etag_of(b"small"), 5, attempts=2)
    settings = replace(SETTINGS, has_deadline=has_deadline)
    done = await make(settings).process(queue.put(message(big(), small)), stop)
    sent = [(task.key, task.attempts, task.hops) for one in queue.sent for task in decode(one.body).tasks]
    if has_deadline:
        assert (done.counts, store.reads) == (Counts(messages=1, continued=2), [])
        assert sent == [("big", 0, 1), ("small", 2, 1)]
    else:
        assert (done.counts, sent) == (Counts(messages=1, hashed=1, continued=1), [("big", 0, 1)])


async def test_too_many_hops_are_a_dead_letter_that_starts_anew(
    make: Make, queue: MemoryQueue, dead: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    settings = WorkerOptions(large=512 * KIB, buffer_size=64 * KIB, has_deadline=True, max_hops=3)
    queue.put(message(big()))
    counts = await drained(queue, make(settings), lambda: StopAfter(12))
    assert counts == Counts(messages=5, continued=4, failed=1, dead_lettered=1)
    (letter,) = dead.sent
    assert letter.attributes["reason"] == "TooManyHops"
    assert decode(letter.body).tasks == (big(),)
    queue.put(letter.body)
    before = len(store.reads)
    await drained(queue, make(settings), Stop)
    assert await digests(ledger) == {"sha256": truth()["sha256"]}
    assert len(store.reads) == before + 1


async def test_object_that_waits_a_second_time_gets_a_new_message(
    make: Make, queue: MemoryQueue, ledger: Ledger
) -> None:
    await ledger.claim(WORK, "other", 250)
    received = queue.put(message(big(attempts=1, hops=2)))
    (received,) = await queue.receive(1, wait=0, visibility=0)
    (received,) = await queue.receive(1, wait=0, visibility=5400)
    done = await make(SETTINGS).process(received)
    assert (done.counts, done.retry_after) == (Counts(messages=1, waiting=1), None)
    (sent,) = queue.sent
    assert decode(sent.body).tasks == (big(attempts=1, hops=2),)
    assert 240 <= sent.delay <= 250


async def test_damaged_checkpoint_is_refused_and_the_object_hashed_from_its_start(
    make: Make, queue: MemoryQueue, ledger: Ledger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await make(SETTINGS).process(queue.put(message(big())), StopAfter(60))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        assert connection.execute("UPDATE leases SET checkpoint = 'no JSON' WHERE checkpoint > ''").rowcount == 1
    with caplog.at_level(logging.WARNING):
        done = await make(SETTINGS).process(queue.put(message(big(hops=1))))
    assert done.counts == Counts(messages=1, hashed=1)
    assert await digests(ledger) == {"sha256": truth()["sha256"]}
    assert any("from its start" in line for line in caplog.messages)


@pytest.mark.parametrize("silent", [False, True], ids=["body", "head"])
@pytest.mark.parametrize(("key", "size"), [("big", SIZE), ("little", 10 * KIB)])
async def test_object_that_stalls_until_the_deadline_each_time_ends_on_the_dead_letter_queue(
    monkeypatch: pytest.MonkeyPatch,
    queue: MemoryQueue,
    dead: MemoryQueue,
    ledger: Ledger,
    key: str,
    size: int,
    silent: bool,
) -> None:
    monkeypatch.setattr(cutoff, "POLL", 0.01)
    monkeypatch.setattr(onepass, "POLL", 0.01)

    class Stalling(MemoryBody):
        async def readinto(self, buffer: memoryview) -> int:
            await asyncio.sleep(3600)
            return 0

    class Stalled(Store):
        @asynccontextmanager
        async def _get(self, key: str, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
            if silent:
                await asyncio.sleep(3600)
            yield Stalling(b"", size, ETAG)

    limited = replace(SETTINGS, max_hops=7)
    processor = processor_of(queue, ledger, Stalled(), limited)
    queue.put(message(HashTask(key, None, ETAG, size)))
    counts = await asyncio.wait_for(drained(queue, processor, lambda: StopAfter(2)), 30)
    resent = 7 if silent or size == SIZE else 4  # S3's silence uses up a hop, and a body that is slow an attempt
    assert counts == Counts(messages=resent + 1, resent=resent, failed=1, dead_lettered=1)
    assert dead.sent[0].attributes["reason"] == "OutOfTime"


PLAIN = WorkerOptions(large=1000)
LIMITED = WorkerOptions(large=1000, has_deadline=True)


def test_object_that_no_checkpoint_carries_on_begins_anew_once_before_a_deadline() -> None:
    """tests/hashing/worker/test_lease.py shows the task of an object that a checkpoint carries on."""
    for settings, hops, expected in ((LIMITED, 0, (2, 1)), (PLAIN, 1, (2, 1)), (LIMITED, 1, "NoCarriedState")):
        task = HashTask("key", None, "etag", 5000, attempts=2, hops=hops)
        after = after_pause(Paused(task, None, 64, "no libcrypto"), settings)
        assert (after.code if isinstance(after, Failed) else (after.attempts, after.hops)) == expected
