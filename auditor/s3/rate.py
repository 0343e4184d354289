"""Limit the calls per second. The rate falls if S3 throttles calls, unless slowing down does not help."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from auditor.s3.refusals import (
    CLIMB_REFUSALS,
    MOST_INCURABLE,
    NONE,
    SURE,
    SURE_AT_ONCE,
    TOLERATED_REFUSALS,
    TOLERATED_SHARE,
    TRIAL_CALLS,
    TRIAL_FALLS,
    TRIAL_REFUSALS,
    RefusalCounts,
    Refusals,
    Trial,
)
from auditor.s3.turns import CallTurns, Clock, Sleep

SETTLING_SECONDS: Final = 0.15
"""Seconds without a call after a fall of the rate. In this time, S3 can recover, and answers its other users.

A refusal of a call that was sent before the fall says nothing about the new rate."""

INTERVAL_SECONDS: Final = 0.25
"""The length of the intervals in which answers and refusals are counted."""

FALL_TO: Final = 0.7
FIRST_FALL_TO: Final = 0.5
"""If S3 refuses calls, the rate falls to this share of the calls per second that S3 can answer, so that S3 can recover.

FIRST_FALL_TO holds for the first fall, and for a fall that tests if slowing down helps."""

FELL: Final = 0.85
"""A fall tells something about refusals only if the new rate is at most this share of the former rate."""

RISE_SHARE: Final = 0.005
LEAST_RISE: Final = 0.5
ACCELERATION_SECONDS: Final = 5.0
"""After each interval without refusals the rate rises by RISE_SHARE of itself, at least by LEAST_RISE calls per second.

The rise is larger by the same amount for each ACCELERATION_SECONDS since the last fall."""

LOWEST_RATE: Final = 40.0
"""The rate never falls below this many calls per second. For a slower server, ConcurrencyLimit slows the run down."""

ARRIVAL_SECONDS: Final = 0.02
"""By so much a call may reach the server later than another one that was sent with it. No more calls than those of one
second are sent in a second and this time, so that the server sees no more in any second.
"""
QUIET_SHARE: Final = 25
"""Others may send at their whole rate once at most one in so many of a second's calls was sent in the last second."""

LEAST_SECONDS: Final = 0.001
"""The shortest time that is assumed between two calls, because a clock may stand still between them."""

CLIMB: Final = 4.0
"""The factor of each rise in a test that asks if the share of refusals stays the same at a higher rate."""

TRIAL_SECONDS: Final = 10.0
"""Seconds after which the rate falls again for a test, if slowing down did not reduce the refusals before."""

DOUBTFUL_SECONDS: Final = 2.0
"""Seconds. If the rate falls so soon after a rise that was a test, the server's refusals depend on the rate."""

FIRST_DOUBT: Final = 0.5
LONGEST_DOUBT: Final = 300.0
"""Longest time in seconds before the next test by a rise. The time doubles each time that S3 refuses more calls right
after such a rise."""


@dataclass(frozen=True, slots=True)
class RateStatistics:
    """The state of a RateLimit at one moment.

    per_second: the present rate; infinity without a limit. answers, refusals: how many calls S3 answered and throttled
    in the present interval. incurable: the share of the calls that S3 seems to refuse at any rate.
    """

    per_second: float
    answers: int
    refusals: int
    incurable: float = 0.0


class RateLimit:
    """Limits the calls per second. Callers take turns, in the order in which they asked.

    per_second: the highest rate; None: no limit until S3 refuses calls, that is, throttles them. No more calls take
    turns in any second, nor in ARRIVAL_SECONDS more.

    If S3 refuses more than a few calls, calls pause for a moment, the rate falls below the rate of S3's answers, and
    rises slowly until S3 refuses again. A higher rate would only bring more refusals, also for the bucket's users.

    Some refusals do not depend on the rate, such as those of a broken server. If S3 refuses the same share of the calls
    after the rate fell, the rate rises by the factor CLIMB, again and again as long as this share stays the same.
    Refusals of this share are then tolerated. If the share grows with the rate, the rate falls as before, and the next
    rise by CLIMB comes later. Every TRIAL_SECONDS the rate falls for a moment, to learn the share anew.
    """

    def __init__(
        self, per_second: float | None, *, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.row = CallTurns(clock, sleep)
        self._sleep = sleep
        self.change(per_second)
        now = clock()
        self._fell_at: float | None = None
        self._now, self._previous = RefusalCounts(now), RefusalCounts(now)
        self._judged_from = now
        self._incurable, self._sure = NONE, False
        self._trial: Trial | None = None
        self._climbed_at = float("-inf")
        self._doubt, self._doubts_until = FIRST_DOUBT / 2, now

    @property
    def limited(self) -> bool:
        """True if the user or S3's refusals have set a limit. Without one, a call need not take a turn."""
        return self.row.interval > 0

    @property
    def waiting_helps(self) -> bool:
        """False if S3 refuses calls at any rate, so that a refused call may be retried soon."""
        return self._incurable.share <= TOLERATED_SHARE or (self._trial is not None and not self._trial.steps)

    def statistics(self) -> RateStatistics:
        return RateStatistics(self._rate, self._now.answers, self._now.refusals, self._incurable.share)

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
        if sent >= self._judged_from:
            self._now.answers += 1
            self._count(refusals=0)
            if now >= self._now.begun_at + INTERVAL_SECONDS:
                self._end_interval(now)

    def refused(self, now: float, sent: float) -> Refusals:
        """Count a call that S3 throttled, and change the rate if the refusals require it.

        Return the judgement on the refusals. now: when the refusal came. sent: when the call was sent.
        """
        if sent < self._judged_from:
            return Refusals.FEW
        self._count(refusals=1)
        seen = self._previous.plus(self._now)
        found = self._judge(seen)
        if found is Refusals.INCURABLE:
            assert self._trial is not None
            self._climb(now, self._trial)
        elif found is Refusals.MANY and seen.refusals >= TOLERATED_REFUSALS:
            self._lower(now, seen)
        elif now >= self._now.begun_at + INTERVAL_SECONDS:
            self._end_interval(now)
        return found

    def _count(self, refusals: int) -> None:
        for counts in (self._now, self._trial.after) if self._trial else (self._now,):
            counts.calls += 1
            counts.refusals += refusals

    def _judge(self, seen: RefusalCounts) -> Refusals:
        trial = self._trial
        if trial is None:
            return Refusals.MANY if seen.above(self._incurable) else Refusals.FEW
        if trial.steps:
            sure = SURE_AT_ONCE if trial.expected(CLIMB_REFUSALS) else SURE
            many = trial.after.refusals >= TRIAL_REFUSALS and trial.after.above(trial.before, sure)
            return Refusals.MANY if many else Refusals.FEW
        if trial.falls < TRIAL_FALLS and self._incurable.share <= TOLERATED_SHARE:
            return Refusals.MANY if seen.above(NONE) else Refusals.FEW
        if trial.worse:
            return Refusals.MANY
        after = trial.after
        nearly_all = after.share > MOST_INCURABLE and after.calls >= TRIAL_CALLS
        if not nearly_all and not (trial.helped and self._rate > LOWEST_RATE):
            if after.calls < TRIAL_CALLS or after.refusals < TRIAL_REFUSALS or after.share <= TOLERATED_SHARE:
                return Refusals.FEW
            if self._doubts_until <= after.begun_at:
                return Refusals.INCURABLE
        return Refusals.MANY if after.above(self._incurable) else Refusals.FEW

    def _lower(self, now: float, seen: RefusalCounts) -> None:
        trial, rate = self._trial, self._rate
        if now < self._climbed_at + DOUBTFUL_SECONDS:  # the refusals depend on the rate after all
            self._doubt = min(LONGEST_DOUBT, 2 * self._doubt)
            self._doubts_until = now + self._doubt
        if trial is not None and trial.steps:
            if not self._sure and self._doubt > FIRST_DOUBT:
                self._incurable = NONE
            self._fall(now, trial.rate)
        else:
            # Before the first refusals S3 answers from a reserve, more than it can sustain: the first fall is deeper.
            share = FIRST_FALL_TO if self._fell_at is None else FALL_TO
            answered = seen.answers / max(now - seen.begun_at, LEAST_SECONDS)
            self._fall(now, share * answered / (1.0 - self._incurable.share))
        falls = 0 if trial is None or trial.steps else trial.falls
        if self._rate <= max(LOWEST_RATE, FELL * rate):
            falls += 1
        self._trial = Trial(seen, RefusalCounts(self._judged_from), falls=falls)

    def _fall(self, now: float, rate: float) -> None:
        self._set(max(LOWEST_RATE, min(self._rate, rate)))
        self._fell_at = now
        self.row.pause(now + SETTLING_SECONDS)
        self._begin_anew(now, now + SETTLING_SECONDS)

    def _begin_anew(self, now: float, judged_from: float) -> None:
        self._trial = None
        # A pause counts in the answers per second: S3 saves calls in it, and answers them afterwards.
        self._now, self._previous = RefusalCounts(now), RefusalCounts(now)
        self._judged_from = judged_from

    def _climb(self, now: float, trial: Trial) -> None:
        """Raise the rate to CLIMB times the calls sent per second, to test if S3 refuses the same share of them.

        trial: the last change of the rate.
        """
        if not trial.steps:
            self._incurable, self._sure = trial.after, False
        sent = trial.after.calls / max(now - trial.after.begun_at, LEAST_SECONDS)
        self._climbed_at = now
        self._set(CLIMB * sent)
        self._begin_anew(now, now)
        self._trial = Trial(self._incurable, RefusalCounts(now), trial.steps + 1, sent, trial.base or sent)

    def _end_interval(self, now: float) -> None:
        """End the present interval of counting.

        Raise the rate if calls had to wait for their turns, and S3 refused no more of them than usual.
        """
        counts = self._now
        waited, self.row.waited = self.row.waited, False
        self._previous, self._now = counts, RefusalCounts(now)
        if self._trial is not None and self._end_trial(now, self._trial):
            return
        expected = self._incurable.share * counts.calls
        if self._fell_at is not None and waited and counts.calls and counts.refusals <= expected + expected**0.5:
            acceleration = 1.0 + (now - self._fell_at) / ACCELERATION_SECONDS
            self._set(self._rate + acceleration * max(LEAST_RISE, RISE_SHARE * self._rate))
        if self._incurable.share > TOLERATED_SHARE and self._trial is None:
            self._probe(now, counts)

    def _probe(self, now: float, counts: RefusalCounts) -> None:
        """Test again, if it is time, whether S3's refusals depend on the rate: raise the rate much, or lower it."""
        if self._climbed_at < self._doubts_until <= now:
            self._climb(now, Trial(self._incurable, counts, 1))
        elif now >= self._climbed_at + TRIAL_SECONDS:
            self._climbed_at = now
            self._doubt = FIRST_DOUBT / 2
            self._fall(now, FIRST_FALL_TO * counts.calls / (now - counts.begun_at))
            self._trial = Trial(self._incurable, RefusalCounts(self._judged_from))

    def _end_trial(self, now: float, trial: Trial) -> bool:
        """Judge the last change of the rate, once enough calls are counted.

        Return True if this trial is not over yet, or if another has begun.
        """
        after = trial.after
        if not trial.steps:
            unclear = after.refusals < TRIAL_REFUSALS and after.share > TOLERATED_SHARE
            enough = (4 if unclear else 2) * TRIAL_REFUSALS
            if not trial.expected(enough) or (self._sure and self._incurable.share * after.calls < enough):
                return False
            self._trial = None
            doubtful = self._doubts_until > after.begun_at
            if after.refusals < TRIAL_REFUSALS or after.share <= TOLERATED_SHARE:
                self._sure, self._incurable = False, after  # no more than S3 always refuses
            elif not doubtful and (self._incurable.share > TOLERATED_SHARE or trial.falls >= TRIAL_FALLS):
                self._climb(now, trial)
                return True
            elif self._sure:
                self._incurable = min(self._incurable, after, key=lambda counts: counts.share)
            elif doubtful:
                self._incurable = after if self._doubt <= FIRST_DOUBT else NONE
            else:
                self._trial = trial
                self._lower(now, self._previous)
                return True
            return False
        if not trial.expected(CLIMB_REFUSALS):
            return True
        self._incurable = self._incurable.plus(after)
        sent = after.calls / max(now - after.begun_at, LEAST_SECONDS)
        self._sure = self._sure or sent >= CLIMB / 2 * trial.base
        no_limit = self._sure and sent < CLIMB / 2 * trial.rate
        if no_limit or self._rate >= self._ceiling:
            self._set(self._ceiling)
            self._begin_anew(now, now)
            self._climbed_at = now
        else:
            self._climb(now, trial)
        return True

    def _set(self, per_second: float) -> None:
        self._rate = min(self._ceiling, per_second)
        self.row.interval = 1.0 / self._rate
