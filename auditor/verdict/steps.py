"""Count the work of judging in steps, so that a policy that is too large gets an answer in bounded time.

Steps are counted, not seconds: the same facts give the same answer on each machine. A step is some work of about a
microsecond.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from auditor.model.access import Reason, ReasonCode

MOST_STEPS: Final = 1_200_000
"""Largest number of steps for one kind of object: the steps that compile the policies, and those that judge the kind.
This work then takes less than 2 s of CPU. `make oracle` measures it."""
LARGE: Final = MOST_STEPS // 10
"""Number of steps from which a policy counts as large, because a person may notice the time."""
MOST_KEY_STEPS: Final = 600_000
"""Largest number of steps that find the combined outcomes of the tests on one condition key, for one requester."""


class Excess(NamedTuple):
    """A number that is too large to judge exactly. number: the number at which the judge stopped. things: the counted
    things, in the plural, such as "steps". most: the largest number that the judge tries.
    """

    number: int
    things: str
    most: int

    @property
    def reason(self) -> Reason:
        """The reason for reports, such as "too-complex: 1,200,004 steps, at most 1,200,000"."""
        return Reason(ReasonCode.TOO_COMPLEX, f"{self.number:,} {self.things}, at most {self.most:,}")


class TooComplexError(Exception):
    """The tests on a condition key have more combined outcomes than can be tried. excess: the number that is too large;
    None if no number is: then no example values are known that tell the outcomes, such as those of a pattern of
    numbers.
    """

    def __init__(self, excess: Excess | None = None) -> None:
        super().__init__("" if excess is None else excess.reason.text)
        self.excess = excess


class OutOfStepsError(Exception):
    """All steps are spent, so the judge gives up. excess: the number of steps."""

    def __init__(self, excess: Excess) -> None:
        super().__init__(excess.reason.text)
        self.excess = excess


class Steps:
    """Counts the steps of judging one kind of object. spent: the steps that the policies took before."""

    def __init__(self, spent: int = 0) -> None:
        self.spent = spent

    def spend(self, number: int = 1) -> None:
        """Count further steps. Raises OutOfStepsError beyond MOST_STEPS."""
        self.spent += number
        if (excess := self.excess) is not None:
            raise OutOfStepsError(excess)

    @property
    def excess(self) -> Excess | None:
        """The number of steps, if it is too large."""
        return Excess(self.spent, "steps", MOST_STEPS) if self.spent > MOST_STEPS else None


class KeySteps:
    """Counts the steps for one condition key."""

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, number: int = 1) -> None:
        """Count further steps. Raises TooComplexError beyond MOST_KEY_STEPS."""
        self.spent += number
        if self.spent > MOST_KEY_STEPS:
            raise TooComplexError(Excess(self.spent, "steps for one condition key", MOST_KEY_STEPS))
