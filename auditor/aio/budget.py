"""A limit on the objects that are hashed at once, and on the memory of their buffers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InFlightStatistics:
    """objects, bytes: number of objects in flight now, and of their bytes. waiting: number of objects that wait."""

    objects: int
    bytes: int
    waiting: int


class InFlightBudget:
    """A limit of `count` objects and `size` bytes in flight. An object larger than `size` may be in flight alone."""

    def __init__(self, count: int, size: int) -> None:
        self._count = max(1, count)
        self._size = size
        self._objects = 0
        self._bytes = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def statistics(self) -> InFlightStatistics:
        return InFlightStatistics(self._objects, self._bytes, len(self._waiting))

    async def take(self, size: int) -> None:
        """Wait until the limit has room for an object of `size` bytes, and count the object."""
        while not self._fits(size):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.add(turn)
            try:
                await turn
            finally:
                self._waiting.discard(turn)
        self._objects += 1
        self._bytes += size

    def give(self, size: int) -> None:
        self._objects -= 1
        self._bytes -= size
        self.wake()

    def borrow(self, size: int) -> bool:
        """Take `size` more bytes for an object in flight. Return False if objects wait, or too few bytes are left."""
        if self._waiting or self._bytes + size > self._size:
            return False
        self._bytes += size
        return True

    def repay(self, size: int) -> None:
        """Give back borrowed bytes."""
        self._bytes -= size
        self.wake()

    def wake(self) -> None:
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)

    def _fits(self, size: int) -> bool:
        return self._objects == 0 or (self._objects < self._count and self._bytes + size <= self._size)
