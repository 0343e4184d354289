"""Judge S3's refusals of calls: if their share is the usual one, and if it changed with the rate. No call is made
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

TOLERATED_SHARE: Final = 0.01
TOLERATED_REFUSALS: Final = 3
"""S3 always refuses some calls. The rate falls only if there are TOLERATED_REFUSALS or more, and if their share of the
calls is too large.

The share is too large if it is above TOLERATED_SHARE. If slowing down did not cure an earlier share, the present share
must be larger than that by more than chance (two standard deviations)."""

TRIAL_REFUSALS: Final = 6
TRIAL_CALLS: Final = 50
"""Least number of refusals (TRIAL_REFUSALS) and of calls (TRIAL_CALLS) from which the refusals of a time say something.
With fewer, for instance after the rate was lowered, their share is a matter of chance."""

TRIAL_FALLS: Final = 2
"""Number of falls in a row, each with a pause for S3 to recover, after which refusals of the same share count as
incurable."""

SAME: Final = 0.7
SAME_OF_FEW: Final = 0.5
"""A share of refusals counts as the same as before, if it is at least this part of the former share.

SAME_OF_FEW holds for a former share of fewer than TRIAL_REFUSALS."""

MOST_INCURABLE: Final = 0.4
"""If a server refuses a larger share of the calls than this, it is nearly out of order: the rate falls in any case."""

CLIMB_REFUSALS: Final = 8
"""Number of expected refusals at which a rise is judged: after so many calls that this number should be among them."""

SURE: Final = 4.0
SURE_AT_ONCE: Final = 2.5
"""Number of standard deviations above the share of incurable refusals that is not chance, although each refusal is
looked at.

SURE_AT_ONCE holds for a single look, at the end of a rise."""


class Refusals(Enum):
    """The judgement on S3's recent refusals of calls.

    FEW: S3 refuses no more calls than usual. MANY: the rate has to fall. INCURABLE: the rate has fallen, but S3 still
    refuses the same share.
    """

    FEW = auto()
    MANY = auto()
    INCURABLE = auto()


@dataclass(slots=True)
class RefusalCounts:
    """The number of calls since the time `begun_at`, and how many of them S3 refused.

    answers: number of calls that S3 did not refuse; always 0 in Trial.after.
    """

    begun_at: float = 0.0
    answers: int = 0
    calls: int = 0
    refusals: int = 0

    @property
    def share(self) -> float:
        return self.refusals / self.calls if self.calls else 0.0

    def plus(self, later: RefusalCounts) -> RefusalCounts:
        return RefusalCounts(
            self.begun_at, self.answers + later.answers, self.calls + later.calls, self.refusals + later.refusals
        )

    def above(self, usual: RefusalCounts, sure: float = SURE) -> bool:
        """True if S3 refused a larger share of these calls than of the `usual` ones, by more than chance.

        The share must be above TOLERATED_SHARE too. sure: by how many standard deviations the share has to be larger,
        if the usual share is above TOLERATED_SHARE.
        """
        expected = max(TOLERATED_SHARE, usual.share) * self.calls
        if usual.share <= TOLERATED_SHARE:
            return bool(self.refusals >= expected + 2.0 * expected**0.5)
        most = expected + sure * (expected + expected * expected / usual.refusals) ** 0.5
        return self.refusals >= TRIAL_REFUSALS and self.refusals >= min(
            most, MOST_INCURABLE * self.calls + SURE * (self.calls / 4) ** 0.5
        )


NONE: Final = RefusalCounts()


@dataclass(slots=True)
class Trial:
    """A change of the rate, with the refusals before and after it.

    steps: 0 if the rate fell; for a rise, its number in the row of rises. rate, base: calls per second before this
    rise, and before the first rise of the row. falls: number of falls in a row that were large enough to learn from.
    """

    before: RefusalCounts
    after: RefusalCounts
    steps: int = 0
    rate: float = 0.0
    base: float = 0.0
    falls: int = 0

    @property
    def worse(self) -> bool:
        """True if S3 refuses a much larger share of the calls after the rate fell than before it fell.

        Then S3's own limit has fallen too, or S3 had answered from a reserve before.
        """
        before = self.before
        most = (before.refusals + 2.0 * before.refusals**0.5 + 1.0) / before.calls * self.after.calls
        return self.after.refusals >= TOLERATED_REFUSALS and self.after.refusals > most + 2.0 * most**0.5 + 1.0

    @property
    def helped(self) -> bool:
        """True if S3 refuses a clearly smaller share of the calls after the rate fell than before."""
        if self.before.refusals >= TRIAL_REFUSALS:
            return self.after.share < SAME * self.before.share
        # The last of a few refusals came just when they were enough: without it, their share is nearer to the truth.
        return self.after.share < SAME_OF_FEW * (self.before.refusals - 1) / self.before.calls

    def expected(self, refusals: int) -> bool:
        """True if there were enough calls after the change: at the former share, `refusals` of them would be
        refused.
        """
        return self.before.share * self.after.calls >= refusals and self.after.calls >= TRIAL_CALLS
