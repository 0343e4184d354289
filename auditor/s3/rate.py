"""A ceiling on calls per second, which falls when S3 throttles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

BURST_SECONDS: Final = 0.05
"""So many seconds of unused calls are made up for after a pause: few, so that no surge follows it."""

SETTLING_SECONDS: Final = 0.25
"""Refusals within this time after the rate fell belong to calls that were sent before."""

INTERVAL_SECONDS: Final = 0.25
"""Answers and refusals are counted over intervals of this length."""

TOLERATED_SHARE: Final = 0.01
TOLERATED_REFUSALS: Final = 3
"""S3 refuses some calls at all times. Refusals up to this share of the calls, or this number, or by chance some more,
do not lower the rate."""

FALL_TO: Final = 0.7
FIRST_FALL_TO: Final = 0.5
"""The rate falls to this share of the calls that S3 answered a second; the rest lets its reserve recover."""

RISE_SHARE: Final = 0.005
LEAST_RISE: Final = 0.5
"""The rate rises by this share, or by so many calls a second, after each interval without refusals.

It rises by as much more for each ACCELERATION_SECONDS since it fell.
"""

ACCELERATION_SECONDS: Final = 5.0
LOWEST_RATE: Final = 40.0
"""Calls a second below which the rate does not fall; ConcurrencyLimit slows down for a server that gives fewer."""

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RateStatistics:
    """per_second: the present rate, infinite without a ceiling. answers, refusals: of the present interval."""

    per_second: float
    answers: int
    refusals: int


class RateLimit:
    """At most `per_second` calls a second, first come, first served; None: no ceiling until S3 refuses calls.

    When S3 refuses more than a few calls, the rate falls a little below the rate of its answers, and rises slowly until
    S3 refuses again. A higher rate would only be refused, and the bucket's own users with it.
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
        self._next_turn = now - BURST_SECONDS  # begin as after a pause
        self._fell_at: float | None = None
        self._calls_waited = False
        # Counts of the present interval, and of the one before it.
        self._begun_at, self._answers, self._refusals = now, 0, 0
        self._previous_begun_at, self._previous_answers, self._previous_refusals = now, 0, 0

    @property
    def limited(self) -> bool:
        """Whether there is a ceiling, S3's or the user's; without one no call needs to take a turn."""
        return self._interval > 0

    def statistics(self) -> RateStatistics:
        return RateStatistics(self._rate, self._answers, self._refusals)

    async def take(self) -> None:
        """Wait for this call's turn."""
        if self._interval and (wait := self.turn()) > 0:
            await self._sleep(wait)

    def turn(self) -> float:
        """Take the next turn; returns the seconds until it."""
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
        """Count a call that S3 throttled, and lower the rate where there were too many."""
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
        # The first refusals come when S3's reserve is used up. Until then it answered more than it can in the long run.
        share = FIRST_FALL_TO if self._fell_at is None else FALL_TO
        self._set(max(LOWEST_RATE, share * min(self._rate, answered)))
        self._fell_at = now
        self._next_turn = max(self._next_turn, now)
        self._begun_at = self._previous_begun_at = now
        self._answers = self._refusals = self._previous_answers = self._previous_refusals = 0

    def _end_interval(self, now: float) -> None:
        """Raise the rate if calls waited for it and none was refused; then count anew."""
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
