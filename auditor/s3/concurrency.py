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

LATENCY_GROWTH: Final = 0.01
"""The best latency on record grows by this share a second, so that an old best is forgotten."""

AUTO_START: Final = 8
AUTO_CEILING: Final = 128
FEWEST_AT_FIRST: Final = 4
MOST_AT_FIRST: Final = 48
MB_FOR_EACH: Final = 36
"""A function starts with one call in flight for so many MB of its memory: each needs a TLS handshake, which costs the
CPU of ten calls, and Lambda gives CPU by memory (docs/performance.md)."""


def first_in_flight(environ: Mapping[str, str] = os.environ) -> int:
    """The calls in flight at the start, each of which makes a TLS handshake: few in a small function."""
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    if not memory.isdecimal():
        return 2 * AUTO_START
    return max(FEWEST_AT_FIRST, min(MOST_AT_FIRST, int(memory) // MB_FOR_EACH))


@dataclass(frozen=True, slots=True)
class ConcurrencyStatistics:
    """limit: objects that may be in flight now. peak: most that were. waiting: callers of acquire()."""

    limit: int
    in_use: int
    peak: int
    waiting: int


class ConcurrencyLimit:
    """Permits to have one object in flight; their number falls on throttling and rises again afterwards.

    ceiling: most permits. auto: start with `first` and double each round until throttled or until latency has doubled,
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
        self._latency_sum = 0.0
        self._best_latency: float | None = None
        self._ignores_throttling_until = 0.0
        self._round_ended_at = clock()

    @property
    def in_use(self) -> int:
        return self._in_use

    def assume_open(self, open_connections: int) -> None:
        """Start with the connections that an earlier run left open, for they need no handshake; only with `auto`.

        Some more permits allow new handshakes at once, but in the smallest function. The limit stays where this run was
        throttled, became slower, or has more in flight already.
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
                    self.release()  # the permit came in the moment of the cancellation
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
        """Count a call that S3 answered without throttling, after so many seconds."""
        self._answers += 1
        self._latency_sum += seconds
        if self._answers >= self._limit:
            self._end_round(self._latency_sum / self._answers)

    def throttled(self) -> None:
        """S3 throttled a call: cut the limit by a quarter, once for all calls that were in flight together."""
        now = self._clock()
        if now < self._ignores_throttling_until:
            return
        self._ignores_throttling_until = now + 0.25
        self._climbing = False
        self._limit = max(1, self._limit * 3 // 4)
        self._answers, self._latency_sum = 0, 0.0

    def _end_round(self, latency: float) -> None:
        self._answers, self._latency_sum = 0, 0.0
        now = self._clock()
        # S3's own latency changes over minutes, so an old best is slowly forgotten.
        growth = 1.0 + LATENCY_GROWTH * (now - self._round_ended_at)
        self._best_latency = latency if self._best_latency is None else min(self._best_latency * growth, latency)
        self._round_ended_at = now
        if self._auto and latency > 2 * self._best_latency:
            self._climbing = False
            self._limit = max(self._first, self._limit - max(1, self._limit // 16))
        elif self._climbing:
            self._limit = min(self._ceiling, self._limit * 2)
        else:
            self._limit = min(self._ceiling, self._limit + 1)
        self._wake()
