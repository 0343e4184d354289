"""A limit on calls per second. It falls if S3 throttles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

BURST_SECONDS: Final = 0.05
"""After a pause, the unused calls of this many seconds may be sent at once. It is short, so that no surge follows."""

SETTLING_SECONDS: Final = 0.25
"""Seconds after the rate fell. Refusals within them belong to calls sent before, and do not lower the rate again."""

INTERVAL_SECONDS: Final = 0.25
"""The length of the intervals in which answers and refusals are counted."""

TOLERATED_SHARE: Final = 0.01
TOLERATED_REFUSALS: Final = 3
"""S3 always refuses some calls. The rate falls if there are TOLERATED_REFUSALS or more, and their share of the calls is
above TOLERATED_SHARE by more than chance (two standard deviations)."""

FALL_TO: Final = 0.7
FIRST_FALL_TO: Final = 0.5
"""When the rate falls, it falls to this share of the calls per second that S3 answered, so that S3 can recover.

FIRST_FALL_TO is for the first time.
"""

RISE_SHARE: Final = 0.005
LEAST_RISE: Final = 0.5
"""After each interval without refusals the rate rises by RISE_SHARE of itself, at least by LEAST_RISE calls per second.

For each ACCELERATION_SECONDS since the last fall, the rise is larger by the same amount.
"""

ACCELERATION_SECONDS: Final = 5.0
LOWEST_RATE: Final = 40.0
"""The rate never falls below this many calls per second. ConcurrencyLimit slows us down for a slower server."""

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RateStatistics:
    """per_second: the present rate, or infinity if there is none. answers, refusals: their numbers in this interval."""

    per_second: float
    answers: int
    refusals: int


class RateLimit:
    """A limit on calls per second; callers take turns in the order in which they asked.

    per_second: the highest rate; None: no limit until S3 refuses calls. If S3 refuses more than a few calls, the rate
    falls below the rate of S3's answers, and rises slowly until S3 refuses again. At a higher rate S3 would refuse more
    of our calls, and calls of the bucket's own users.
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
        self._next_turn = now - BURST_SECONDS  # the start counts as the end of a pause
        self._fell_at: float | None = None
        self._calls_waited = False
        # Counts of the present interval, and of the one before it.
        self._begun_at, self._answers, self._refusals = now, 0, 0
        self._previous_begun_at, self._previous_answers, self._previous_refusals = now, 0, 0

    @property
    def limited(self) -> bool:
        """True if the rate has a limit, set by the user or after refusals. If not, no call needs to take a turn."""
        return self._interval > 0

    def statistics(self) -> RateStatistics:
        return RateStatistics(self._rate, self._answers, self._refusals)

    async def take(self) -> None:
        """Wait for this call's turn."""
        if self._interval and (wait := self.turn()) > 0:
            await self._sleep(wait)

    def turn(self) -> float:
        """Take the next turn, and return the seconds until it."""
        now = self._clock()
        turn = max(self._next_turn, now - BURST_SECONDS)
        self._next_turn = turn + self._interval
        if turn <= now:
            return 0.0
        self._calls_waited = True
        return turn - now

    def answered(self, now: float) -> None:
        """Count a call that S3 answered without throttling."""
        self._answers += 1
        if now >= self._begun_at + INTERVAL_SECONDS:
            self._end_interval(now)

    def refused(self, now: float) -> None:
        """Count a call that S3 throttled, and lower the rate if there were too many."""
        self._refusals += 1
        if self._fell_at is not None and now < self._fell_at + SETTLING_SECONDS:
            return
        answers, refusals = self._previous_answers + self._answers, self._previous_refusals + self._refusals
        tolerated = TOLERATED_SHARE * (answers + refusals)
        if refusals >= max(TOLERATED_REFUSALS, tolerated + 2.0 * tolerated**0.5):
            self._lower(now, answers)
        elif now >= self._begun_at + INTERVAL_SECONDS:
            self._end_interval(now)

    def _lower(self, now: float, answers: int) -> None:
        seconds = now - self._previous_begun_at
        answered = answers / seconds if seconds > 0 else LOWEST_RATE
        # Before the first refusals S3 answers from a reserve, more than it can sustain: so the first fall is deeper.
        share = FIRST_FALL_TO if self._fell_at is None else FALL_TO
        self._set(max(LOWEST_RATE, share * min(self._rate, answered)))
        self._fell_at = now
        self._next_turn = max(self._next_turn, now)
        self._begun_at = self._previous_begun_at = now
        self._answers = self._refusals = self._previous_answers = self._previous_refusals = 0

    def _end_interval(self, now: float) -> None:
        """Raise the rate if calls had to wait and none was refused. Then begin the next interval."""
        if self._fell_at is not None and self._calls_waited and not self._refusals:
            acceleration = 1.0 + (now - self._fell_at) / ACCELERATION_SECONDS
            self._set(self._rate + acceleration * max(LEAST_RISE, RISE_SHARE * self._rate))
        self._calls_waited = False
        self._previous_begun_at, self._previous_answers, self._previous_refusals = (
            self._begun_at,
            self._answers,
            self._refusals,
        )
        self._begun_at, self._answers, self._refusals = now, 0, 0

    def _set(self, per_second: float) -> None:
        self._rate = min(self._ceiling, per_second)
        self._interval = 1.0 / self._rate
