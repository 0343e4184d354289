"""The worker's loop: it ends when idle, stops on request, keeps its messages hidden, and loses none."""

from __future__ import annotations

import asyncio

import pytest

from auditor.errors import CallFailed, CredentialsError, LedgerError, QueueError
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.loop import Pace, Worker
from auditor.hashing.worker.options import WorkerOptions
from auditor.ledger.base import Ledger
from tests.support.fakes.hashing import MemoryQueue, Store, message_of, processor_of, until
from tests.support.fakes.ledger import Hooked, failing


@pytest.fixture
def store() -> Store:
    return Store({f"key-{number}": f"data {number}".encode() for number in range(60)})


def make(queue: MemoryQueue, ledger: Ledger, store: Store, pace: Pace | None = None, concurrency: int = 8) -> Worker:
    processor = processor_of(queue, ledger, store, WorkerOptions(concurrency=concurrency, retry_base=8.0))
    worker = Worker(processor, pace or Pace(idle=20), clock=lambda: queue.time)
    queue.busy = lambda: worker.in_hand > 0
    return worker


async def test_empty_queue_ends_the_worker_after_its_idle_time(
    queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    assert await make(queue, ledger, store).run() == Counts()
    assert queue.time == 20


async def test_worker_waits_for_messages_that_it_re_sent_itself(
    queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    store.failures["key-1"] = [CallFailed("GetObject", "AccessDenied", 403)] * 3
    queue.put(message_of(store, "key-1"))
    counts = await make(queue, ledger, store, Pace(idle=1)).run()
    assert counts == Counts(messages=4, hashed=1, resent=3)
    assert queue.left == []


async def test_no_more_messages_in_hand_and_objects_in_flight_than_set(
    queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    for start in range(0, 60, 5):
        queue.put(message_of(store, *(f"key-{number}" for number in range(start, start + 5))))
    store.hold = asyncio.Event()
    work = asyncio.create_task(make(queue, ledger, store, Pace(idle=0, messages=3), concurrency=4).run())
    await until(lambda: store.now == 4)
    assert [message.receive_count for message in queue.left] == [1, 1, 1] + [0] * 9
    store.hold.set()
    assert (await work).hashed == 60
    assert store.most == 4


async def test_stop_finishes_messages_in_hand_and_leaves_the_rest(
    queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    for number in range(10):
        queue.put(message_of(store, f"key-{number}"))
    store.hold = asyncio.Event()
    worker = make(queue, ledger, store, Pace(messages=2))
    work = asyncio.create_task(worker.run())
    await until(lambda: store.now == 2)
    worker.stop()
    store.hold.set()
    assert await work == Counts(messages=2, hashed=2)
    assert len(queue.left) == 8


async def test_messages_received_while_stopping_are_given_back(
    queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    worker = make(queue, ledger, store)
    queue.on_receive = worker.stop
    received = queue.put(message_of(store, "key-1"))
    assert await worker.run() == Counts()
    assert queue.hidden == [(received.receipt, 0)]
    assert store.reads == []


async def test_message_in_hand_is_kept_hidden_and_never_after_it_is_settled(
    queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    queue.put(message_of(store, "key-1"))
    store.hold = asyncio.Event()
    work = asyncio.create_task(make(queue, ledger, store, Pace(idle=0, visibility=90, heartbeat=0.001)).run())
    await until(lambda: len(queue.hidden) >= 3)
    assert set(queue.hidden) == {("receipt-1", 90)}
    store.hold.set()
    await work
    beats = len(queue.hidden)
    await asyncio.sleep(0.01)
    assert len(queue.hidden) == beats


async def test_credentials_that_end_in_mid_hash_cost_no_object_in_hand(
    queue: MemoryQueue, ledger: Ledger, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: object) -> None:
        raise CredentialsError("no usable AWS credentials (CredentialRetrievalError)")

    monkeypatch.setattr(queue, "hide", refuses)
    monkeypatch.setattr(queue, "delete", refuses)
    store.hold = asyncio.Event()
    queue.put(message_of(store, "key-1", "key-2"))
    worker = make(queue, ledger, store, Pace(idle=0, heartbeat=0.001))
    working = asyncio.create_task(worker.run())
    await until(lambda: store.now == 2)
    await asyncio.sleep(0.01)
    store.hold.set()
    worker.stop()
    assert (await working).hashed == 2
    assert len(queue.left) == 1


async def test_queue_that_breaks_is_raised(queue: MemoryQueue, ledger: Ledger, store: Store) -> None:
    queue.broken = QueueError("the queue cannot be reached")
    with pytest.raises(QueueError, match="cannot be reached"):
        await make(queue, ledger, store).run()


async def test_ledger_that_breaks_is_raised_once_and_no_message_is_lost(
    queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    full = Hooked(ledger, failing(LedgerError("the disk is full"), "record_many"))
    for number in range(20):
        queue.put(message_of(store, f"key-{number}"))
    with pytest.raises(LedgerError, match="the disk is full"):
        await make(queue, full, store, Pace(messages=4)).run()
    assert len(queue.left) == 20
    assert queue.deleted == []
    assert all(4 <= seconds <= 8 for _, seconds in queue.hidden)


async def test_cancelled_in_mid_hash_deletes_nothing(queue: MemoryQueue, ledger: Ledger, store: Store) -> None:
    queue.put(message_of(store, "key-1"))
    store.hold = asyncio.Event()
    work = asyncio.create_task(make(queue, ledger, store).run())
    await until(lambda: store.now == 1)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert len(queue.left) == 1
