"""Hash filled buffers in order, in a thread, while the event loop fills other buffers of the object's pool."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from queue import SimpleQueue
from typing import Final

from auditor.aio.loop import wake
from auditor.hashing.digest.digester import Digester

INLINE: Final = 256 * 1024
"""Largest size in bytes of objects that the event loop hashes itself. For these, a thread would cost more than it
saves."""


class Buffers:
    """A pool of at most `most` buffers of `size` bytes. Each buffer is allocated when it is first needed, and then
    reused.

    Only one task of the event loop at a time may take buffers. Any thread may give buffers back.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._left = most
        self._enough = max(1, most // 2)
        self._free: deque[bytearray] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None

    async def take(self) -> bytearray:
        """Return a free buffer. If all are in use, wait until half of them are free again.

        A wait for one buffer would wake the event loop twice as often.
        """
        if not self._free and self._left:
            self._left -= 1
            return bytearray(self._size)
        if not self._free:
            self._waiting = waiting = self._loop.create_future()
            if len(self._free) < self._enough:  # if not, a thread gave buffers back before it could see the waiter
                await waiting
            self._waiting = None
        return self._free.pop()

    def give(self, buffer: bytearray) -> None:
        self._free.append(buffer)
        waiting = self._waiting
        if waiting is not None and len(self._free) == self._enough:
            self._loop.call_soon_threadsafe(wake, waiting)


class InlineExecutor(Executor):
    """A marker in place of an executor with threads. A DigestThread with this executor hashes on the event loop."""


class DigestThread:
    """Hashes the buffers of one object, one after the other, in a thread.

    executor: lends the thread, from the first buffer until abandon(), because a new task for each buffer would cost
    more CPU. With None or an InlineExecutor there is no thread, and put() hashes on the event loop.
    """

    def __init__(self, digester: Digester, executor: Executor | None) -> None:
        self._digester = digester
        self._executor = None if isinstance(executor, InlineExecutor) else executor
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[memoryview | None, Callable[[], object]] | None] = SimpleQueue()
        self._begun = False
        self._abandoned = False
        self._error: Exception | None = None

    def put(self, view: memoryview, hashed: Callable[[], object]) -> None:
        """Pass a filled buffer to the thread. Raises the error of an earlier buffer.

        hashed: called in the thread when the buffer may be used again.
        """
        if self._error is not None:
            raise self._error
        if self._executor is None:
            self._digester.update(view)
            hashed()
            return
        self._queue.put((view, hashed))
        if not self._begun:
            self._begun = True
            self._executor.submit(self._work)

    async def empty(self) -> None:
        """Wait until all buffers are hashed. Raises the first error of the hashing."""
        if self._begun:
            empty: asyncio.Future[None] = self._loop.create_future()
            self._queue.put((None, partial(self._loop.call_soon_threadsafe, wake, empty)))
            await empty
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Drop the buffers that wait, and end the thread's work when the buffer in hand is hashed."""
        self._abandoned = True
        self._queue.put(None)

    def _work(self) -> None:
        """Hash buffers until abandon() is called. The thread runs this function."""
        while (item := self._queue.get()) is not None and not self._abandoned:
            view, done = item
            if view is not None and self._error is None:
                try:
                    self._digester.update(view)
                except Exception as error:  # put() and empty() raise it on the event loop
                    self._error = error
            done()
