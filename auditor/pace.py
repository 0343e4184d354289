"""How fast to go: a ceiling on calls a second, and a number of calls in flight that falls when S3 asks for fewer."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

BURST_SECONDS: Final = 0.05
"""How much unused time the rate keeps: small, so that a pause is never followed by a surge."""

AUTO_START: Final = 8
AUTO_CEILING: Final = 128

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class Rate:
    """At most `per_second` calls a second, first come, first served; None: no ceiling."""

    def __init__(
        self, per_second: float | None, *, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._interval = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next = clock()

    @property
    def limited(self) -> bool:
        """There is a ceiling; without one nobody needs to take a turn."""
        return self._interval > 0

    async def take(self) -> None:
        """Wait for this call's turn."""
        if not self._interval:
            return
        now = self._clock()
        turn = max(self._next, now - BURST_SECONDS)
        self._next = turn + self._interval
        if turn > now:
            await self._sleep(turn - now)


@dataclass(frozen=True, slots=True)
class PermitStatistics:
    limit: int
    in_use: int
    peak: int
    waiting: int


class Permits:
    """Permission to have one object in flight; the number falls on throttling and rises again while all goes well.

    ceiling: never more. auto: start low and double each round until throttled or until latency has doubled, then rise
    by one a round; otherwise start at the ceiling. A round is as many answers as the limit.
    """

    def __init__(self, ceiling: int, *, auto: bool = False, clock: Clock = time.monotonic) -> None:
        self._ceiling = max(1, ceiling)
        self._auto = auto
        self._limit = min(AUTO_START, self._ceiling) if auto else self._ceiling
        self._climbing = auto
        self._clock = clock
        self._in_use = 0
        self._peak = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._answers = 0
        self._latencies = 0.0
        self._best: float | None = None
        self._deaf_until = 0.0

    @property
    def in_use(self) -> int:
        return self._in_use

    def statistics(self) -> PermitStatistics:
        return PermitStatistics(self._limit, self._in_use, self._peak, len(self._waiters))

    async def acquire(self) -> None:
        """Wait for a permit, in order of arrival."""
        if self._in_use >= self._limit or self._waiters:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except BaseException:
                if waiter.done() and not waiter.cancelled():
                    self.release()  # it was handed to us in the moment we were cancelled
                elif waiter in self._waiters:
                    self._waiters.remove(waiter)
                raise
        else:
            self._in_use += 1
        self._peak = max(self._peak, self._in_use)

    def release(self) -> None:
        self._in_use -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiters and self._in_use < self._limit:
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._in_use += 1
                waiter.set_result(None)

    def answered(self, seconds: float) -> None:
        """A call was answered without throttling after so many seconds."""
        self._answers += 1
        self._latencies += seconds
        if self._answers >= self._limit:
            self._end_round(self._latencies / self._answers)

    def throttled(self) -> None:
        """S3 asked for fewer calls: three quarters as many, once for all the calls that were in flight together."""
        now = self._clock()
        if now < self._deaf_until:
            return
        self._deaf_until = now + 0.25
        self._climbing = False
        self._limit = max(1, self._limit * 3 // 4)
        self._answers, self._latencies = 0, 0.0

    def _end_round(self, latency: float) -> None:
        self._answers, self._latencies = 0, 0.0
        self._best = latency if self._best is None else min(self._best * 1.01, latency)
        if self._auto and latency > 2 * self._best:
            self._climbing = False
            self._limit = max(min(AUTO_START, self._ceiling), self._limit - max(1, self._limit // 16))
        elif self._climbing:
            self._limit = min(self._ceiling, self._limit * 2)
        else:
            self._limit = min(self._ceiling, self._limit + 1)
        self._wake()
