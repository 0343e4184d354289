"""Buffers for object bodies, and the memory that the blocks of one object share. A block is the range of one GET."""

from __future__ import annotations

import asyncio
from collections import deque

from auditor.aio.loop import wake


class Buffers:
    """A pool of at most `most` buffers of one size. A buffer is made when it is first needed, and then reused.

    One caller at a time takes buffers, on the event loop. Any thread may give them back.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._left = most
        self._enough = max(1, most // 2)
        self._free: deque[bytearray] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None

    async def take(self) -> bytearray:
        """Return a free buffer. If all buffers are in use, wait until half of them are free: a wait for a single buffer
        would wake the event loop twice as often.
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


class BlockMemory:
    """A pool of buffers that several blocks share. A block gets all its buffers at once; blocks are served first come,
    first served.

    Any thread may give buffers back, one by one. All other methods belong to the event loop.
    """

    def __init__(self) -> None:
        self._buffer = 0
        self._size = 0
        self._granted = 0
        self._free: list[bytearray] = []
        self._returned: deque[tuple[bytearray, int]] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._loop = asyncio.get_running_loop()

    def change(self, size: int, buffer: int) -> None:
        """Lend at most `size` bytes from now on, in buffers of `buffer` bytes."""
        if buffer != self._buffer:
            self._free.clear()
        self._size, self._buffer = size, buffer
        self._settle()

    def ask(self, size: int) -> asyncio.Future[None]:
        """Return a future that is done when a block of `size` bytes may take its buffers. A block larger than the pool
        waits until it is alone.
        """
        granted: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((size, granted))
        self._settle()
        return granted

    def take(self) -> bytearray:
        """Return a buffer for a block whose future from ask() is done."""
        return self._free.pop() if self._free else bytearray(self._buffer)

    def give(self, buffer: bytearray, size: int) -> None:
        """Give back a buffer. size: number of the block's bytes that the buffer held."""
        self._returned.append((buffer, size))
        if self._waiting:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        """Take in the buffers that were given back, and serve the waiting blocks that now fit."""
        while self._returned:
            buffer, size = self._returned.popleft()
            self._granted -= size
            if len(buffer) == self._buffer:
                self._free.append(buffer)
        while self._waiting:
            size, granted = self._waiting[0]
            if self._granted and self._granted + size > self._size:
                break
            self._waiting.popleft()
            self._granted += size
            wake(granted)
