"""Let callers take turns at even intervals, in the order in which they asked."""

from __future__ import annotations

import asyncio
from collections import deque
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
        self._next = clock()  # no burst at the start: another process may have sent its calls just before
        self._clock = clock
        self._sleep = sleep
        self._first = asyncio.Lock()
        self._recent: deque[float] | None = None
        self._window = 0.0

    def limit(self, most: int | None, seconds: float) -> None:
        """Let at most so many turns come within any time of so many seconds, whatever the interval; None: no limit.

        Even intervals alone let more come in one second, for a caller that was late may make up for BURST_SECONDS.
        """
        self._recent = None if most is None else deque(self._recent or (), maxlen=most)
        self._window = seconds

    def recent(self, seconds: float) -> int:
        """Return the number of turns in the last so many seconds, up to those that limit() allows."""
        begin = self._clock() - seconds
        return sum(1 for one in self._recent or () if one > begin)

    async def take(self) -> None:
        """Wait for the next turn, and take it."""
        if self.interval:
            async with self._first:
                while (wait := self.turn()) > 0:
                    await self._sleep(wait)

    def turn(self) -> float:
        """Take the next turn if its time has come, and return 0. If not, return the seconds until then."""
        now, recent = self._clock(), self._recent
        free = self._next
        if recent is not None and len(recent) == recent.maxlen:
            free = max(free, recent[0] + self._window)
        if (wait := free - now) > 0:
            self.waited = True
            return wait
        self._next = max(self._next, now - BURST_SECONDS) + self.interval
        if recent is not None:
            recent.append(now)
        return 0.0

    def pause(self, until: float) -> None:
        """Let the next turn come at this time of the clock."""
        self._next = until
