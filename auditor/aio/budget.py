"""How many objects may be hashed at once, and how much memory their buffers may take."""

from __future__ import annotations

import asyncio


class InFlightBudget:
    """How many objects, and how many bytes of them, may be in flight; the largest object passes when it is alone."""

    def __init__(self, count: int, size: int) -> None:
        self._count = max(1, count)
        self._size = size
        self._taken = 0
        self._bytes = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def taken(self) -> int:
        return self._taken

    async def take(self, size: int) -> None:
        while not self._fits(size):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.add(turn)
            try:
                await turn
            finally:
                self._waiting.discard(turn)
        self._taken += 1
        self._bytes += size

    def give(self, size: int) -> None:
        self._taken -= 1
        self._bytes -= size
        self.wake()

    def borrow(self, size: int) -> bool:
        """Bytes for an object that has its permit, when nobody waits for them; False: it has to do without."""
        if self._waiting or self._bytes + size > self._size:
            return False
        self._bytes += size
        return True

    def repay(self, size: int) -> None:
        """What was borrowed."""
        self._bytes -= size
        self.wake()

    def wake(self) -> None:
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)

    def _fits(self, size: int) -> bool:
        return self._taken == 0 or (self._taken < self._count and self._bytes + size <= self._size)
