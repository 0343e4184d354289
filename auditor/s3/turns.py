"""Let callers take turns at even intervals, in the order in which they asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

BURST_SECONDS: Final = 0.05
"""After a pause, the calls that could have been sent in this many seconds may be sent at once. The time is short, so
that no surge follows."""

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class CallTurns:
    """A row of callers that wait for their turns. Only the first one looks at the clock, so that a new interval counts
    for all callers behind it.

    interval: seconds from one turn to the next; 0 if nobody has to wait. waited: True if a caller had to wait; a reader
    of this field may set it to False.
    """

    def __init__(self, clock: Clock, sleep: Sleep) -> None:
        self.interval = 0.0
        self.waited = False
        self._next = clock() - BURST_SECONDS  # the start counts as the end of a pause
        self._clock = clock
        self._sleep = sleep
        self._first = asyncio.Lock()

    async def take(self) -> None:
        """Wait for the next turn, and take it."""
        if self.interval:
            async with self._first:
                while (wait := self.turn()) > 0:
                    await self._sleep(wait)

    def turn(self) -> float:
        """Take the next turn if its time has come, and return 0. If not, return the seconds until then."""
        now = self._clock()
        if (wait := self._next - now) > 0:
            self.waited = True
            return wait
        self._next = max(self._next, now - BURST_SECONDS) + self.interval
        return 0.0

    def pause(self, until: float) -> None:
        """Let the next turn come at this time of the clock."""
        self._next = until
