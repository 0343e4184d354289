"""The number of calls in flight, which falls when S3 throttles."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from auditor.s3.rate import Clock

FORGETTING: Final = 0.01
"""By this share the best latency is taken for higher with each second."""

AUTO_START: Final = 8
AUTO_CEILING: Final = 128
FEWEST_AT_FIRST: Final = 4
MOST_AT_FIRST: Final = 48
MB_FOR_EACH: Final = 36
"""A function's memory for each call in flight at first: each needs a TLS handshake, which costs the CPU of ten calls,
and memory buys CPU (docs/performance.md)."""


def first_in_flight(environ: Mapping[str, str] = os.environ) -> int:
    """How many calls to have in flight at first, where handshakes are what CPU goes to: few in a small function."""
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    if not memory.isdecimal():
        return 2 * AUTO_START
    return max(FEWEST_AT_FIRST, min(MOST_AT_FIRST, int(memory) // MB_FOR_EACH))


@dataclass(frozen=True, slots=True)
class ConcurrencyStatistics:
    limit: int
    in_use: int
    peak: int
    waiting: int


class ConcurrencyLimit:
    """Permission to have one object in flight; the number falls on throttling and rises again while all goes well.

    ceiling: never more. auto: start with `first` and double each round until throttled or until latency has doubled,
    then rise by one a round; otherwise start at the ceiling. A round is as many answers as the limit.
    """

    def __init__(
        self, ceiling: int, *, auto: bool = False, first: int = AUTO_START, clock: Clock = time.monotonic
    ) -> None:
        self._ceiling = max(1, ceiling)
        self._auto = auto
        self._first = min(first, self._ceiling)
        self._limit = self._first if auto else self._ceiling
        self._climbing = auto
        self._clock = clock
        self._in_use = 0
        self._peak = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._answers = 0
        self._latencies = 0.0
        self._best: float | None = None
        self._deaf_until = 0.0
        self._rounded_at = clock()

    @property
    def in_use(self) -> int:
        return self._in_use

    def assume_open(self, open_connections: int) -> None:
        """Connections that an earlier run left open need no handshake: where the number is automatic, begin with them.

        And with some more, for handshakes that are worth it at once; in the smallest function none is. Not where this
        run was refused already, or became slower, nor where it has more in flight by now.
        """
        if self._climbing and open_connections >= self._first:
            more = max(0, self._first - FEWEST_AT_FIRST)
            self._limit = max(self._limit, min(self._ceiling, open_connections + more))

    def statistics(self) -> ConcurrencyStatistics:
        return ConcurrencyStatistics(self._limit, self._in_use, self._peak, len(self._waiters))

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
        now = self._clock()
        # S3's own latency changes over minutes: the best of long ago is slowly forgotten.
        forgiven = 1.0 + FORGETTING * (now - self._rounded_at)
        self._best = latency if self._best is None else min(self._best * forgiven, latency)
        self._rounded_at = now
        if self._auto and latency > 2 * self._best:
            self._climbing = False
            self._limit = max(self._first, self._limit - max(1, self._limit // 16))
        elif self._climbing:
            self._limit = min(self._ceiling, self._limit * 2)
        else:
            self._limit = min(self._ceiling, self._limit + 1)
        self._wake()
