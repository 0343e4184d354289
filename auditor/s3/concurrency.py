"""Limit the number of objects in flight. The limit falls if S3 throttles, and rises again later."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from auditor.s3.rate import Clock

LATENCY_GROWTH: Final = 0.01
"""The remembered best latency grows by this share each second, so that an old best does not count for ever."""

AUTO_START: Final = 8
AUTO_CEILING: Final = 128
FEWEST_AT_FIRST: Final = 4
MOST_AT_FIRST: Final = 48
MB_FOR_EACH: Final = 36
"""Megabytes. A Lambda function starts with one call in flight for each MB_FOR_EACH of its memory.

Each of these calls needs a TLS handshake, which takes the CPU of ten calls, and Lambda gives CPU in proportion to
memory (docs/performance.md).
"""


def first_in_flight(environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of calls in flight with which a run begins.

    In a Lambda function the number depends on the memory, and so on the CPU, because each of these calls needs a TLS
    handshake.
    """
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    if not memory.isdecimal():
        return 2 * AUTO_START
    return max(FEWEST_AT_FIRST, min(MOST_AT_FIRST, int(memory) // MB_FOR_EACH))


class ConcurrencyStatistics(Struct, frozen=True):
    """The state of a ConcurrencyLimit at one moment.

    limit: number of objects that may be in flight. in_use: number of objects that are in flight. peak: the largest
    number that ever was. waiting: number of callers that wait in acquire().
    """

    limit: int
    in_use: int
    peak: int
    waiting: int


class ConcurrencyLimit:
    """Gives permits, each for one object in flight. The number of permits falls when S3 throttles, and rises later.

    ceiling: the largest number of permits. auto: True to begin with `first` permits, False to begin with the ceiling.
    With auto, the number doubles each round until S3 throttles or the latency has doubled; from then on it rises by one
    each round. A round ends when S3 has answered as many calls as there are permits.
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
        """Raise the limit to the number of connections that an earlier run left open, which need no handshake.

        A few permits are added for new connections, except in the smallest Lambda functions. The limit stays as it is
        if it is fixed (not `auto`), is higher already, or has fallen in this run.
        """
        if self._climbing and open_connections >= self._first:
            more = max(0, self._first - FEWEST_AT_FIRST)
            self._limit = max(self._limit, min(self._ceiling, open_connections + more))

    def statistics(self) -> ConcurrencyStatistics:
        return ConcurrencyStatistics(self._limit, self._in_use, self._peak, len(self._waiters))

    async def acquire(self) -> None:
        """Wait for a permit. Callers get permits in the order in which they asked for one."""
        if self._in_use >= self._limit or self._waiters:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except BaseException:
                if waiter.done() and not waiter.cancelled():
                    self.release()  # the permit was given just before the cancellation
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
        """Count a call that S3 did not throttle. seconds: how long the call took."""
        self._answers += 1
        self._latency_sum += seconds
        if self._answers >= self._limit:
            self._end_round(self._latency_sum / self._answers)

    def throttled(self) -> None:
        """Lower the limit by a quarter because S3 throttled a call. Do this at most once in a quarter of a second.

        Calls that are in flight together are mostly throttled together, so they count as one.
        """
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
        # S3's own latency changes over minutes, so the old best loses its weight slowly.
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
