"""Buffers in memory for the bytes of objects, and the memory that the blocks of one object share. A block is the range
of the object that one GET reads.
"""

from __future__ import annotations

import asyncio
from collections import deque

from auditor.aio.loop import wake


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


class BlockMemory:
    """A limited memory for the blocks of one object. A block is the range of one GET, and fills several buffers.

    A block gets the memory for all its buffers at once, and blocks get memory in the order in which ask() was called.
    Any thread may call give(); the other methods belong to the event loop.
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
        """Set the limit of memory to `size` bytes, and the size of each buffer to `buffer` bytes."""
        if buffer != self._buffer:
            self._free.clear()
        self._size, self._buffer = size, buffer
        self._settle()

    def ask(self, size: int) -> asyncio.Future[None]:
        """Return a future that is done when a block of `size` bytes may take its buffers.

        A block that is larger than the limit waits until no other block has memory.
        """
        granted: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((size, granted))
        self._settle()
        return granted

    def take(self) -> bytearray:
        """Return a buffer for a block. Call this only after the future that ask() returned for the block is done."""
        return self._free.pop() if self._free else bytearray(self._buffer)

    def give(self, buffer: bytearray, size: int) -> None:
        """Give a buffer back, from any thread.

        size: number of the block's bytes that the buffer held.
        """
        self._returned.append((buffer, size))
        if self._waiting:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        """Collect the buffers that were given back, and grant memory to the waiting blocks, in order, as long as they
        fit.
        """
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
