"""How fast to go: a ceiling on calls a second, and a number of calls in flight that falls when S3 asks for fewer."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

BURST_SECONDS: Final = 0.05
"""How much unused time the rate keeps: small, so that a pause is never followed by a surge."""

SETTLING_SECONDS: Final = 0.25
"""So long after the rate fell, refusals are those of calls that were under way."""
LOOK_SECONDS: Final = 0.25
FEW: Final = 0.01
FEWEST: Final = 3
"""Refusals up to this share of the calls, or by chance some more, say nothing of the rate: S3 has some at all times."""
SHARE: Final = 0.7
FIRST_SHARE: Final = 0.5
"""Of what S3 has answered; what is left is for what it had kept in reserve to come back."""
RISE: Final = 0.005
LEAST_RISE: Final = 0.5
"""By this share, or so many calls a second, the rate rises at each look; by as much more for each HASTE_SECONDS."""
HASTE_SECONDS: Final = 5.0
SLOWEST: Final = 40.0
"""Calls a second, unless the user's ceiling is lower; a server that gives fewer has the calls in flight reduced."""

FORGETTING: Final = 0.01
"""By this share the best latency is taken for higher with each second."""

AUTO_START: Final = 8
AUTO_CEILING: Final = 128
FEWEST_AT_FIRST: Final = 4
MOST_AT_FIRST: Final = 48
MB_FOR_EACH: Final = 36
"""A function's memory for each call in flight at first: each needs a TLS handshake, which costs the CPU of ten calls,
and memory buys CPU (docs/performance.md)."""

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class Rate:
    """At most `per_second` calls a second, first come, first served; None: as many as are answered.

    When S3 refuses more than a few, the rate becomes a little less than what it answered, and rises slowly until that
    happens again: whoever sends more is refused the rest, and so are the bucket's own users.
    """

    def __init__(
        self, per_second: float | None, *, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._ceiling = per_second or float("inf")
        self._rate = self._ceiling
        self._interval = 1.0 / self._rate
        self._clock = clock
        self._sleep = sleep
        now = clock()
        self._next = now - BURST_SECONDS  # begin as after a pause
        self._fell_at: float | None = None
        self._waited = False
        # Counted since the last look, and in the time between that one and the one before.
        self._since, self._answers, self._refusals = now, 0, 0
        self._before, self._answers_before, self._refusals_before = now, 0, 0

    @property
    def limited(self) -> bool:
        """There is a ceiling, S3's or the user's; without one nobody needs to take a turn."""
        return self._interval > 0

    @property
    def per_second(self) -> float:
        """Calls a second at this moment; infinite where nothing limits them."""
        return self._rate

    async def take(self) -> None:
        """Wait for this call's turn."""
        if self._interval and (wait := self.turn()) > 0:
            await self._sleep(wait)

    def turn(self) -> float:
        """Seconds until this call's turn, which is taken."""
        now = self._clock()
        turn = max(self._next, now - BURST_SECONDS)
        self._next = turn + self._interval
        if turn <= now:
            return 0.0
        self._waited = True
        return turn - now

    def answered(self, now: float) -> None:
        """A call was answered, and not refused."""
        self._answers += 1
        if now >= self._since + LOOK_SECONDS:
            self._look(now)

    def refused(self, now: float) -> None:
        """S3 asked for fewer calls."""
        self._refusals += 1
        if self._fell_at is not None and now < self._fell_at + SETTLING_SECONDS:
            return
        answers, refusals = self._answers_before + self._answers, self._refusals_before + self._refusals
        few = FEW * (answers + refusals)
        if refusals >= max(FEWEST, few + 2.0 * few**0.5):
            self._fall(now, answers)
        elif now >= self._since + LOOK_SECONDS:
            self._look(now)

    def _fall(self, now: float, answers: int) -> None:
        seconds = now - self._before
        answered = answers / seconds if seconds > 0 else SLOWEST
        # The first refusals come when what S3 had kept in reserve is used up: until then it answered more than it can.
        share = FIRST_SHARE if self._fell_at is None else SHARE
        self._set(max(SLOWEST, share * min(self._rate, answered)))
        self._fell_at = now
        self._next = max(self._next, now)
        self._since = self._before = now
        self._answers = self._refusals = self._answers_before = self._refusals_before = 0

    def _look(self, now: float) -> None:
        """Rise, if calls have waited for the rate and none was refused; and count anew."""
        if self._fell_at is not None and self._waited and not self._refusals:
            haste = 1.0 + (now - self._fell_at) / HASTE_SECONDS
            self._set(self._rate + haste * max(LEAST_RISE, RISE * self._rate))
        self._waited = False
        self._before, self._answers_before, self._refusals_before = self._since, self._answers, self._refusals
        self._since, self._answers, self._refusals = now, 0, 0

    def _set(self, per_second: float) -> None:
        self._rate = min(self._ceiling, per_second)
        self._interval = 1.0 / self._rate


def first_in_flight(environ: Mapping[str, str] = os.environ) -> int:
    """How many calls to have in flight at first, where handshakes are what CPU goes to: few in a small function."""
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    if not memory.isdecimal():
        return 2 * AUTO_START
    return max(FEWEST_AT_FIRST, min(MOST_AT_FIRST, int(memory) // MB_FOR_EACH))


@dataclass(frozen=True, slots=True)
class PermitStatistics:
    limit: int
    in_use: int
    peak: int
    waiting: int


class Permits:
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

    def begin_with(self, open_connections: int) -> None:
        """Connections that an earlier run left open need no handshake: where the number is automatic, begin with them.

        And with some more, for handshakes that are worth it at once; in the smallest function none is. Not where this
        run was refused already, or became slower, nor where it has more in flight by now.
        """
        if self._climbing and open_connections >= self._first:
            more = max(0, self._first - FEWEST_AT_FIRST)
            self._limit = max(self._limit, min(self._ceiling, open_connections + more))

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
