"""Buffers for object bodies, and the room that they share."""

from __future__ import annotations

import asyncio
from collections import deque

from auditor.aio.loop import wake


class Buffers:
    """A few buffers of one size, made when they are first needed, used again and again. most: how many.

    One taker at a time, on the loop; they are given back in any thread.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._left = most
        self._enough = max(1, most // 2)
        self._free: deque[bytearray] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None

    async def take(self) -> bytearray:
        """Once all are in use it waits for half of them: then the loop is woken half as often."""
        if not self._free and self._left:
            self._left -= 1
            return bytearray(self._size)
        if not self._free:
            self._waiting = waiting = self._loop.create_future()
            if len(self._free) < self._enough:  # none were given back before it was seen that one waits
                await waiting
            self._waiting = None
        return self._free.pop()

    def give(self, buffer: bytearray) -> None:
        self._free.append(buffer)
        waiting = self._waiting
        if waiting is not None and len(self._free) == self._enough:
            self._loop.call_soon_threadsafe(wake, waiting)


class Room:
    """Memory for several blocks at once: all that a block needs is promised together, to one block after the other.

    It is given back buffer by buffer, in any thread; all else is for the loop.
    """

    def __init__(self) -> None:
        self._buffer = 0
        self._size = 0
        self._promised = 0
        self._free: list[bytearray] = []
        self._returned: deque[tuple[bytearray, int]] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._loop = asyncio.get_running_loop()

    def change(self, size: int, buffer: int) -> None:
        """Have `size` bytes in all from now on, in buffers of so many."""
        if buffer != self._buffer:
            self._free.clear()
        self._size, self._buffer = size, buffer
        self._settle()

    def ask(self, size: int) -> asyncio.Future[None]:
        """Done when the buffers of a block of so many bytes may be taken; one larger than all may when it is alone."""
        granted: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((size, granted))
        self._settle()
        return granted

    def take(self) -> bytearray:
        """A buffer of what was granted."""
        return self._free.pop() if self._free else bytearray(self._buffer)

    def give(self, buffer: bytearray, size: int) -> None:
        """size: how many of the granted bytes it held."""
        self._returned.append((buffer, size))
        if self._waiting:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        while self._returned:
            buffer, size = self._returned.popleft()
            self._promised -= size
            if len(buffer) == self._buffer:
                self._free.append(buffer)
        while self._waiting:
            size, granted = self._waiting[0]
            if self._promised and self._promised + size > self._size:
                break
            self._waiting.popleft()
            self._promised += size
            wake(granted)
