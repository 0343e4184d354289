"""Hash filled buffers in order, on a thread, while others are filled."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from auditor.digesting import Digester

INLINE: Final = 256 * 1024
"""Bytes of an object that is hashed on the loop: a thread's hand-over would cost more than these take."""


class Feed:
    """Gives buffers to a digester one after the other, never two at once.

    executor: None, and they are hashed at once, on the loop. One call of it hashes whatever waits by then: no thread is
    held while nothing does, so that any number of feeds can share few threads.
    """

    def __init__(self, digester: Digester, executor: Executor | None) -> None:
        self._digester = digester
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._pending: deque[tuple[memoryview, Callable[[], None]]] = deque()
        self._lock = threading.Lock()
        self._working = False
        self._left = 0
        self._error: Exception | None = None
        self._empty: asyncio.Future[None] | None = None

    def put(self, view: memoryview, hashed: Callable[[], None]) -> None:
        """Hash the view after all others; raises what hashing one of them raised.

        hashed: called on the loop when its memory can be used again.
        """
        if self._error is not None:
            raise self._error
        if self._executor is None:
            self._digester.update(view)
            hashed()
            return
        self._left += 1
        with self._lock:
            self._pending.append((view, hashed))
            begin, self._working = not self._working, True
        if begin:
            self._executor.submit(self._work)

    async def empty(self) -> None:
        """Wait until all is hashed; raises what hashing raised."""
        while self._left:
            self._empty = self._loop.create_future()
            await self._empty
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Forget what waits; what is being hashed is finished in vain."""
        with self._lock:
            self._pending.clear()

    def _work(self) -> None:
        """In a thread: hash until nothing waits."""
        while True:
            with self._lock:
                if not self._pending:
                    self._working = False
                    return
                view, hashed = self._pending.popleft()
            if self._error is None:
                try:
                    self._digester.update(view)
                except Exception as error:  # it is raised where the loop waits for the digest
                    self._error = error
            self._loop.call_soon_threadsafe(self._hashed, hashed)

    def _hashed(self, hashed: Callable[[], None]) -> None:
        self._left -= 1
        hashed()
        if not self._left and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)


class Buffers:
    """A few buffers of one size, made when they are first needed, used again and again. most: how many."""

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._left = most
        self._free: list[bytearray] = []
        self._waiting: asyncio.Future[None] | None = None

    async def take(self) -> bytearray:
        """For one taker at a time."""
        while not self._free:
            if self._left:
                self._left -= 1
                return bytearray(self._size)
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return self._free.pop()

    def give(self, buffer: bytearray) -> None:
        self._free.append(buffer)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
