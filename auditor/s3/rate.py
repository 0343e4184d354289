"""Limit the calls per second. The rate falls if S3 throttles calls, unless slowing down does not help.

The law of the rate:

1. Calls take turns at the present rate, and no second has more of them than the ceiling.
2. Calls sent at one rate are counted in windows of WINDOW calls: how many, and how many of them S3 refused.
3. If S3 refuses a larger share of two windows than is tolerated, the rate falls to FALL_TO of the calls answered.
4. Each fall is a test. It lasts until S3, at the former share, would have refused TEST_REFUSALS calls.
5. If S3 then refuses more than before, or fewer but still more than is tolerated, the rate falls again.
6. If S3 refuses no more than is tolerated, the fall has helped, and the rate stays.
7. If S3 refuses the same share, slowing down does not help: the share is tolerated unless it is above HOPELESS. The
   rate returns to its value before the first fall that did not help, and climbs by the factor CLIMB with each window.
8. After a fall that helped, the rate soon returns to most of the calls that S3 answered. Then it rises with each
   window, by RISE calls per second for each second since the fall.
9. After RETEST windows another fall tests the tolerated share, so that it is forgotten when it has ended.
10. The rate never falls below LOWEST_RATE: for a slower server, ConcurrencyLimit slows the run down.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from msgspec import Struct

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


WINDOW: Final = 64
FALL_TO: Final = 0.6
TEST_REFUSALS: Final = 12
HOPELESS: Final = 0.5
CLIMB: Final = 1.1
RISE: Final = 0.5
RETEST: Final = 100
LOWEST_RATE: Final = 40.0
"""Calls per second."""

ARRIVAL_SECONDS: Final = 0.02
"""By so much a call may reach the server later than another one that was sent with it. No more calls than those of one
second are sent in a second and this time, so that the server sees no more in any second.
"""
QUIET_SHARE: Final = 25
"""Others may send at their whole rate once at most one in so many of a second's calls was sent in the last second."""


USUAL_SHARE: Final = 0.01
"""S3 always refuses some calls. This share of them is no reason to slow down."""

LEAST_REFUSALS: Final = 3
"""Fewer refusals are chance, whatever their share."""

SURE: Final = 2.0
SURE_OF_MORE: Final = 4.0
"""By how many standard deviations two shares have to differ, so that the difference is not chance.

SURE_OF_MORE holds where a share above the usual one is tolerated, because every refusal is then looked at for long."""


class RefusalCounts(Struct):
    """The number of calls that were sent from the time `begun_at` to the time `until`, and how many S3 refused."""

    begun_at: float = 0.0
    until: float = 0.0
    calls: int = 0
    refusals: int = 0

    @classmethod
    def since(cls, begun_at: float) -> RefusalCounts:
        return cls(begun_at, begun_at)

    @property
    def share(self) -> float:
        return self.refusals / self.calls if self.calls else 0.0

    @property
    def per_second(self) -> float:
        """Calls sent per second. A clock may stand still between two calls."""
        return self.calls / max(self.until - self.begun_at, 0.001)

    def count(self, sent: float, refusals: int) -> None:
        self.until = max(self.until, sent)
        self.calls += 1
        self.refusals += refusals

    def plus(self, later: RefusalCounts) -> RefusalCounts:
        return RefusalCounts(self.begun_at, later.until, self.calls + later.calls, self.refusals + later.refusals)

    def above(self, tolerated: RefusalCounts) -> bool:
        """True if S3 refused a larger share of these calls than of the tolerated ones, by more than chance."""
        if tolerated.share > USUAL_SHARE:
            expected = tolerated.share * self.calls
            chance = SURE_OF_MORE * math.sqrt(expected * (1.0 + self.calls / tolerated.calls))
        else:
            expected = USUAL_SHARE * self.calls
            chance = SURE * math.sqrt(expected)
        return self.refusals >= LEAST_REFUSALS and self.refusals >= expected + chance

    def below(self, earlier: RefusalCounts) -> bool:
        """True if S3 refused a smaller share of these calls than of the earlier ones, by more than chance."""
        both = self.plus(earlier).share
        chance = SURE * math.sqrt(both * (1.0 - both) * (1.0 / self.calls + 1.0 / earlier.calls))
        return self.share < earlier.share - chance


NONE: Final = RefusalCounts()


class RateStatistics(Struct, frozen=True):
    """The state of a RateLimit at one moment.

    per_second: the present rate; infinity without a limit. answers, refusals: how many calls S3 answered and throttled
    in the present window. incurable: the share of the calls that S3 seems to refuse at any rate.
    """

    per_second: float
    answers: int
    refusals: int
    incurable: float = 0.0


class Fall(NamedTuple):
    """A fall of the rate. rate: the calls per second before it. before: the calls that were counted before it."""

    rate: float
    before: RefusalCounts


class FallTest(NamedTuple):
    """The test whether a fall helps. before, after: the calls that are counted before and after the fall."""

    before: RefusalCounts
    after: RefusalCounts

    @property
    def over(self) -> bool:
        """True if there were enough calls after the fall to compare the shares."""
        after = self.after
        if after.calls < WINDOW:
            return False
        return self.before.share * after.calls >= TEST_REFUSALS or (not after.refusals and after.below(self.before))


class RateLimit:
    """Limits the calls per second, by the ten sentences above. Callers take turns, in the order in which they asked.

    per_second: the highest rate; None: no limit until S3 refuses calls, that is, throttles them. No more calls take
    turns in any second, nor in ARRIVAL_SECONDS more.
    """

    def __init__(
        self, per_second: float | None, *, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.row = CallTurns(clock, sleep)
        self._sleep = sleep
        self.limited = False
        """True if the user or S3's refusals have set a limit. Without one, a call need not take a turn."""
        self.change(per_second)
        self._tolerated = NONE
        self._test: FallTest | None = None
        self._falls: list[Fall] = []
        """The falls that may be taken back: each from a lower rate than the one before."""
        self._soon, self._climbs = 0.0, False
        now = clock()
        self._since, self._windows = now, 0
        self._now, self._previous = RefusalCounts.since(now), RefusalCounts.since(now)

    @property
    def waiting_helps(self) -> bool:
        """False if S3 refuses calls at any rate, so that a refused call may be retried soon."""
        return self._tolerated.share <= USUAL_SHARE

    def statistics(self) -> RateStatistics:
        now = self._now
        incurable = 0.0 if self.waiting_helps else self._tolerated.share
        return RateStatistics(self._rate, now.calls - now.refusals, now.refusals, incurable)

    def change(self, per_second: float | None) -> None:
        """Set the highest rate anew. None: no limit until S3 refuses calls."""
        self._ceiling = per_second or float("inf")
        most = None if per_second is None else max(1, int(per_second))
        self.row.limit(most, 1.0 + ARRIVAL_SECONDS)
        self._set(self._ceiling)

    async def take(self) -> None:
        """Wait for the next turn in the row of callers, and take it."""
        await self.row.take()

    async def quiet(self) -> None:
        """Wait until others may send at this rate, so that the server sees no more in any second: a second at most."""
        if self._ceiling < float("inf"):
            while self.row.recent(1.0) > self._ceiling / QUIET_SHARE:
                await self._sleep(1.0 / QUIET_SHARE)

    def answered(self, now: float, sent: float) -> None:
        """Count a call that S3 did not throttle. now: when its answer came. sent: when it was sent."""
        self._count(now, sent, 0)

    def refused(self, now: float, sent: float) -> bool:
        """Count a call that S3 throttled, and change the rate if the refusals require it.

        Return True if S3 refuses too many calls even at the lowest rate. now: when the refusal came. sent: when the
        call was sent.
        """
        return self._count(now, sent, 1) and self._rate <= LOWEST_RATE

    def _count(self, now: float, sent: float, refusals: int) -> bool:
        """Count a call. Return True if the rate has to fall."""
        if sent < self._since:
            return False  # it was sent at another rate
        self._now.count(sent, refusals)
        if self._test is not None:
            self._test.after.count(sent, refusals)
            return self._judge(now, self._test)
        if not refusals and self._now.calls < WINDOW:
            return False
        seen = self._previous.plus(self._now)
        if refusals and seen.calls >= WINDOW and seen.above(self._tolerated):
            return self._fall(now, seen)
        return self._now.calls >= WINDOW and self._end_window(now, seen)

    def _end_window(self, now: float, seen: RefusalCounts) -> bool:
        """Begin the next window, at a higher rate if the rate has fallen and calls had to wait for their turns.

        seen: this window and the one before. Return True if the rate falls for another test of the tolerated share.
        """
        waited, self.row.waited = self.row.waited, False
        if waited and self._rate < self._ceiling:
            risen = self._rate * CLIMB if self._climbs else self._rate + RISE * (now - self._since)
            self._set(max(risen, (self._rate + self._soon) / 2))
        self._previous, self._now = self._now, RefusalCounts.since(self._now.until)
        self._windows += 1
        return self._windows >= RETEST and not self.waiting_helps and self._fall(now, seen)

    def _fall(self, now: float, seen: RefusalCounts) -> bool:
        """Lower the rate to a part of the calls that S3 answered, and begin the test of this fall. Return True.

        seen: the calls before. As many calls as S3 refused of them are left out, so that S3 can recover.
        """
        answered = (1.0 - seen.share) * seen.per_second
        share = FALL_TO**2 if self._test else FALL_TO
        fallen = max(share * answered, FALL_TO**3 * seen.per_second, LOWEST_RATE)
        while self._falls and self._falls[-1].rate <= self._rate:
            self._falls.pop()
        self._falls.append(Fall(self._rate, seen))
        self._soon = share**0.5 * answered
        self._set(min(self._rate, fallen))
        self._begin_anew(now + seen.refusals / self._rate)
        self.row.pause(self._since)
        self._test = FallTest(seen, RefusalCounts.since(self._since))
        return True

    def _judge(self, now: float, test: FallTest) -> bool:
        """Judge the last fall, once there were enough calls. Return True if the rate falls again."""
        after = test.after
        if after.calls < WINDOW // 2:
            return False
        if after.above(test.before):
            return self._fall(now, after)
        if not test.over:
            return False
        fewer = after.below(test.before)
        if not after.above(NONE) or (fewer and not after.above(self._tolerated)):
            self._climbs = False
            if not after.above(NONE):
                self._tolerated = NONE
        elif fewer or after.share > HOPELESS:
            return self._fall(now, after)
        else:
            self._climbs, self._tolerated = True, after.plus(test.before)
            while self._falls and not self._tolerated.below(self._falls[-1].before):
                self._set(self._falls.pop().rate)
        self._test = None
        self._begin_anew(now)
        return False

    def _begin_anew(self, since: float) -> None:
        """Count only the calls that are sent after `since`."""
        self._since, self._windows = since, 0
        self._now, self._previous = RefusalCounts.since(since), RefusalCounts.since(since)

    def _set(self, per_second: float) -> None:
        self._rate = min(self._ceiling, per_second)
        self.row.interval = 1.0 / self._rate
        self.limited = self.row.interval > 0
