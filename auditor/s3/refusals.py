"""Count S3's refusals of calls, and compare their shares. No call is made here."""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct

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
