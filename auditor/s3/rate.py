"""A ceiling on calls per second, which falls when S3 throttles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
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

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class RateLimit:
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
