"""Buffers are hashed in order, on one thread, in memory that blocks get one after the other."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from auditor.hashing.digest.digester import Buffers, Digester, DigestThread
from auditor.hashing.digest.parallel import BlockMemory


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


async def test_the_only_buffer_goes_to_who_waits_for_it() -> None:
    buffers = Buffers(10, 1)
    only = await buffers.take()
    waiting = asyncio.create_task(buffers.take())
    await asyncio.sleep(0)
    buffers.give(only)
    assert await asyncio.wait_for(waiting, 30) is only


async def test_memory_is_granted_in_order_and_a_block_larger_than_all_gets_it_alone() -> None:
    room = BlockMemory()
    room.change(10, 10)
    first, second, large = room.ask(10), room.ask(10), room.ask(500)
    assert (first.done(), second.done()) == (True, False)
    room.change(20, 10)
    assert (second.done(), large.done()) == (True, False)
    later = room.ask(10)
    room.give(room.take(), 10)
    await asyncio.sleep(0)
    assert (large.done(), later.done()) == (False, False), "a later block would fit"
    room.give(room.take(), 10)
    await asyncio.wait_for(large, 30)
    assert not later.done()
