"""Find where one way of running a night becomes better than another one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.scale.bill import Term, bill, total
from benchmarks.scale.measured import Measured
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import MB, ROW_DISK, Night, Pace, pace

RANGES: Final = 64
"""Ranges of a map: what `auditor plan` makes by default."""
HOUR: Final = 3600.0
"""Seconds of one function from which on the night goes over a map."""
MOST_OBJECTS: Final = 10**12
"""Where a search ends."""
_WORTH: Final = 0.88
"""Twice as many ranges at once must shorten the night at least so much."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """A night with its course and its bill."""

    night: Night
    course: Pace
    terms: list[Term]

    @property
    def dollars(self) -> float:
        """Dollars of the night, the share of what is stored included."""
        return total(self.terms)


def simulate(night: Night, found: Measured) -> Simulated:
    """Return the course and the bill of a night."""
    course = pace(night, found)
    return Simulated(night, course, bill(night, course, found))


def mapped(night: Night, found: Measured, ranges: int = RANGES) -> Night:
    """Return the night over the ranges of a map: a power of two of them at once, or all, no more than shorten it. There
    are more ranges where the rows of an Inventory would not fit on the disk of a function.
    """
    if night.mode is Mode.MIXED:
        ranges = max(ranges, math.ceil(night.objects * ROW_DISK / (night.disk * MB)))
    best = replace(night, ranges=ranges, at_once=1)
    for at_once in sorted({min(ranges, 2**power) for power in range(1, math.ceil(math.log2(ranges)) + 1)}):
        wider = replace(best, at_once=at_once)
        if pace(wider, found).seconds > _WORTH * pace(best, found).seconds:
            break
        best = wider
    return best


def first_size(is_so: Callable[[int], bool], most: int = MOST_OBJECTS) -> int | None:
    """Return the smallest number of objects from which on something is so, to 1 %; None if it is not so up to `most`.

    is_so: False up to a number of objects, True from it on.
    """
    if not is_so(most):
        return None
    low, high = 0, most
    while high - low > max(1, low // 100):
        middle = (low + high) // 2 if low < 1000 else math.isqrt(low * high)
        low, high = (low, middle) if is_so(middle) else (middle, high)
    return high


def advised(night: Night, found: Measured) -> Simulated:
    """Return the night on its machine, or with one function where that ends within an hour, else over a map."""
    alone = simulate(night, found)
    return alone if night.machine or alone.course.seconds <= HOUR else simulate(mapped(night, found), found)
