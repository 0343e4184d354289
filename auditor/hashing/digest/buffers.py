"""Buffers for object bodies, and the memory that the blocks of one object share."""

from __future__ import annotations

import asyncio
from collections import deque

from auditor.aio.loop import wake


class Buffers:
    """At most `most` buffers of one size, made at their first use and used again and again.

    One caller at a time takes, on the event loop; any thread gives back.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._left = most
        self._enough = max(1, most // 2)
        self._free: deque[bytearray] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None

    async def take(self) -> bytearray:
        """A free buffer. While all are in use, wait until half of them are free: that wakes the loop half as often."""
        if not self._free and self._left:
            self._left -= 1
            return bytearray(self._size)
        if not self._free:
            self._waiting = waiting = self._loop.create_future()
            if len(self._free) < self._enough:  # no thread gave back before it could see the waiter
                await waiting
            self._waiting = None
        return self._free.pop()

    def give(self, buffer: bytearray) -> None:
        self._free.append(buffer)
        waiting = self._waiting
        if waiting is not None and len(self._free) == self._enough:
            self._loop.call_soon_threadsafe(wake, waiting)


class BlockMemory:
    """Memory of several blocks. A block gets all its buffers together, in the order of the requests.

    Any thread gives back, buffer by buffer; all other methods belong to the event loop.
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
        """Lend `size` bytes in all from now on, in buffers of `buffer` bytes."""
        if buffer != self._buffer:
            self._free.clear()
        self._size, self._buffer = size, buffer
        self._settle()

    def ask(self, size: int) -> asyncio.Future[None]:
        """Done when a block of `size` bytes may take its buffers. A larger block waits until it is alone."""
        granted: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((size, granted))
        self._settle()
        return granted

    def take(self) -> bytearray:
        """A buffer of a granted block."""
        return self._free.pop() if self._free else bytearray(self._buffer)

    def give(self, buffer: bytearray, size: int) -> None:
        """Return a buffer. size: granted bytes that it held."""
        self._returned.append((buffer, size))
        if self._waiting:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
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
