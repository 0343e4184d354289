"""Dispatch: ten messages a batch, refused entries again, and nothing is counted that the queue did not take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import pytest

from auditor.aws.sqs import Outgoing, RefusedEntry
from auditor.errors import QueueError
from auditor.hashing.limits import LARGE
from auditor.hashing.queue.message import decode
from auditor.hashing.queue.send import Dispatcher
from auditor.model.object import ObjectRef
from tests.support.fakes.hashing import MemoryQueue


def ref(number: int, size: int = 10) -> ObjectRef:
    return ObjectRef(f"key-{number}", "etag", size, "2026-01-01T00:00:00Z", version_id="v1")


def refuse(*indexes: int, sender: bool = False) -> Callable[[Sequence[Outgoing]], Iterable[RefusedEntry]]:
    def choose(entries: Sequence[Outgoing]) -> list[RefusedEntry]:
        return [RefusedEntry(entries[index], "Trouble", sender) for index in indexes]

    return choose


def make(queue: MemoryQueue, pauses: list[float] | None = None) -> Dispatcher:
    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)

    return Dispatcher(queue, "run", "bucket", ("sha256",), sleep=sleep)


async def add(dispatcher: Dispatcher, one: ObjectRef) -> None:
    dispatcher.add([one])
    await dispatcher.send()


async def add_all(dispatcher: Dispatcher, numbers: Iterable[int]) -> None:
    for number in numbers:
        await add(dispatcher, ref(number, LARGE))


def sent_keys(queue: MemoryQueue) -> list[str]:
    return sorted(task.key for entry in queue.sent for task in decode(entry.body).tasks)


async def test_small_objects_share_messages_and_nothing_is_counted_before_it_is_sent() -> None:
    queue = MemoryQueue()
    dispatcher = make(queue)
    for number in range(250):
        await add(dispatcher, ref(number))
    assert (dispatcher.queued, queue.sends) == (0, 0)
    await dispatcher.close()
    assert (dispatcher.queued, len(queue.sent), queue.sends) == (250, 3, 1)
    message = decode(queue.sent[0].body)
    assert (message.run, message.bucket, message.algorithms) == ("run", "bucket", ("sha256",))
    assert (message.tasks[0].key, message.tasks[0].version_id, message.tasks[0].size) == ("key-0", "v1", 10)


async def test_ten_messages_are_sent_at_once_without_waiting_for_the_end() -> None:
    queue = MemoryQueue()
    dispatcher = make(queue)
    await add_all(dispatcher, range(25))
    assert (dispatcher.queued, queue.sends) == (20, 2)
    await dispatcher.close()
    assert (dispatcher.queued, queue.sends) == (25, 3)


async def test_one_refused_entry_of_ten_is_sent_again_alone() -> None:
    queue = MemoryQueue()
    queue.refusals = [refuse(3)]
    pauses: list[float] = []
    dispatcher = make(queue, pauses)
    await add_all(dispatcher, range(10))
    assert (dispatcher.queued, queue.sends, len(pauses)) == (10, 2, 1)
    assert sent_keys(queue) == sorted(f"key-{number}" for number in range(10))


async def test_entries_that_stay_refused_are_an_error_and_are_not_counted() -> None:
    queue = MemoryQueue()
    queue.refusals = [refuse(3), *[refuse(0)] * 10]
    pauses: list[float] = []
    dispatcher = make(queue, pauses)
    with pytest.raises(QueueError, match=r"refused 1 of 10 messages 6 times \(Trouble\)"):
        await add_all(dispatcher, range(10))
    assert (dispatcher.queued, queue.sends) == (9, 6)
    assert [0.1 * 2**attempt / 2 <= pause <= 0.1 * 2**attempt for attempt, pause in enumerate(pauses, 1)] == [True] * 5
    queue.refusals = [refuse(0, sender=True)]
    dispatcher = make(queue)
    with pytest.raises(QueueError, match=r"refused 1 of 10 messages once \(Trouble\)"):
        await add_all(dispatcher, range(10))
    assert (dispatcher.queued, queue.sends) == (9, 7), "it is the sender's fault"


async def test_tasks_that_share_a_dispatcher_send_each_object_once() -> None:
    queue = MemoryQueue()
    dispatcher = make(queue)

    async def add_fifty(start: int) -> None:
        for number in range(start, start + 50):
            await add(dispatcher, ref(number, LARGE))
            await asyncio.sleep(0)

    await asyncio.gather(add_fifty(0), add_fifty(50), add_fifty(100))
    await dispatcher.close()
    assert dispatcher.queued == 150
    assert sent_keys(queue) == sorted(f"key-{number}" for number in range(150))
