"""Buffers are hashed in order, on one thread, in memory that blocks get one after the other."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from auditor.hashing.digest.digester import Digester, make_digester
from auditor.hashing.digest.digester_thread import Buffers, DigestThread, InlineExecutor
from auditor.hashing.digest.parallel import BlockMemory


class Noting(Digester):
    """Notes the threads of its calls."""

    def __init__(self) -> None:
        super().__init__({})
        self.threads: set[int] = set()

    def update(self, data: memoryview) -> None:
        self.threads.add(threading.get_ident())
        super().update(data)


def nothing() -> None:
    """The callback of a freed buffer; it does nothing."""


async def test_views_are_hashed_in_order_by_a_thread_while_buffers_come_back() -> None:
    digester, whole = make_digester(["sha256"]), hashlib.sha256()
    with ThreadPoolExecutor(1) as threads:
        feed, buffers = DigestThread(digester, threads), Buffers(1000, 4)
        taken: set[int] = set()
        for number in range(500):
            buffer = await buffers.take()
            taken.add(id(buffer))
            buffer[:] = number.to_bytes(2, "big") * 500
            whole.update(buffer)
            feed.put(memoryview(buffer), partial(buffers.give, buffer))
        await feed.empty()
        feed.abandon()
    assert digester.hexdigests() == {"sha256": whole.hexdigest()}
    assert len(taken) <= 4


@pytest.mark.parametrize(
    ("make", "elsewhere"), [(lambda: ThreadPoolExecutor(4), True), (InlineExecutor, False), (lambda: None, False)]
)
async def test_one_object_has_one_thread_or_none(
    make: Callable[[], ThreadPoolExecutor | InlineExecutor | None], elsewhere: bool
) -> None:
    digester, executor = Noting(), make()
    feed = DigestThread(digester, executor)
    for _ in range(50):
        feed.put(memoryview(b"x"), nothing)
        await asyncio.sleep(0)
    await feed.empty()
    feed.abandon()
    if executor is not None:
        executor.shutdown()
    assert digester.count == 50
    assert len(digester.threads) == 1
    assert (threading.get_ident() not in digester.threads) is elsewhere


async def test_abandoned_digest_frees_its_thread_for_the_next() -> None:
    with ThreadPoolExecutor(1) as threads:
        for _ in range(3):
            digester = make_digester(["md5"])
            feed = DigestThread(digester, threads)
            feed.put(memoryview(b"abc"), nothing)
            await asyncio.wait_for(feed.empty(), 30)
            assert digester.hexdigests() == {"md5": hashlib.md5(b"abc").hexdigest()}
            feed.abandon()


async def test_buffers_that_wait_are_dropped_when_the_digest_is_abandoned() -> None:
    begun, free = threading.Event(), threading.Event()
    freed: list[int] = []

    class Held(Digester):
        def update(self, data: memoryview) -> None:
            begun.set()
            free.wait(30)
            super().update(data)

    digester = Held({})
    with ThreadPoolExecutor(1) as threads:
        feed = DigestThread(digester, threads)
        for number in range(3):
            feed.put(memoryview(b"x"), partial(freed.append, number))
        await asyncio.to_thread(begun.wait, 30)
        feed.abandon()
        free.set()
    assert (digester.count, freed) == (1, [0])


async def test_error_of_a_view_is_raised_by_the_next_put() -> None:
    class Broken(Digester):
        def update(self, data: memoryview) -> None:
            raise MemoryError("no room")

    with ThreadPoolExecutor(1) as threads:
        feed, freed = DigestThread(Broken({}), threads), threading.Event()
        feed.put(memoryview(b"x"), freed.set)
        await asyncio.to_thread(freed.wait, 30)
        with pytest.raises(MemoryError):
            feed.put(memoryview(b"y"), nothing)
        feed.abandon()


async def test_buffer_that_came_back_is_lent_again_and_no_other_is_made() -> None:
    buffers = Buffers(10, 4)
    buffer = await buffers.take()
    buffers.give(buffer)
    assert await buffers.take() is buffer


async def test_who_waits_for_a_buffer_goes_on_when_half_of_them_are_free() -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    buffers = Buffers(10, 4)
    taken = [await buffers.take() for _ in range(4)]
    waiting, free = asyncio.create_task(buffers.take()), []
    for _ in range(3):
        for _ in range(5):
            await asyncio.sleep(0)
        free.append(waiting.done())
        buffers.give(taken.pop())
    assert free == [False, False, True]
    await asyncio.sleep(0)
    assert not faults


async def test_memory_that_grows_serves_the_blocks_that_wait() -> None:
    room = BlockMemory()
    room.change(10, 10)
    first, second = room.ask(10), room.ask(10)
    assert (first.done(), second.done()) == (True, False)
    room.change(20, 10)
    assert second.done()


async def test_buffers_of_another_layout_are_not_lent_again() -> None:
    room = BlockMemory()
    room.change(40, 10)
    for _ in range(2):
        room.ask(10)
    buffer = room.take()
    room.give(buffer, 10)
    room.change(40, 20)
    late = room.take()
    assert (len(buffer), len(late)) == (10, 20)
    room.give(bytearray(10), 10)
    room.change(40, 20)
    assert len(room.take()) == 20


async def test_memory_is_granted_in_order_even_where_a_later_block_would_fit() -> None:
    room = BlockMemory()
    room.change(100, 10)
    first, second, third = room.ask(60), room.ask(60), room.ask(10)
    assert [one.done() for one in (first, second, third)] == [True, False, False]
    for _ in range(2):
        room.give(room.take(), 10)
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [one.done() for one in (first, second, third)] == [True, True, False]


async def test_block_larger_than_all_memory_gets_it_alone() -> None:
    room = BlockMemory()
    room.change(100, 10)
    small, large = room.ask(10), room.ask(500)
    assert (small.done(), large.done()) == (True, False)
    room.give(room.take(), 10)
    await asyncio.wait_for(large, 30)


async def test_memory_returned_in_another_thread_wakes_the_waiting_block() -> None:
    room = BlockMemory()
    room.change(10, 10)
    assert room.ask(10).done()
    waiting = room.ask(10)
    buffer = room.take()
    await asyncio.to_thread(room.give, buffer, 10)
    await asyncio.wait_for(waiting, 30)
    assert room.take() is buffer
