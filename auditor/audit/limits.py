"""Share the limits of a run among its ranges, and those of a command among its targets: the calls per second, the
calls, the dollars, and the number of objects and of targets at once.
"""

from __future__ import annotations

from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from auditor.config.settings import Settings
from auditor.errors import LimitTooLow
from auditor.s3.calls import AUTO_CEILING, AUTO_START, Caller, ConcurrencyLimit, first_in_flight
from auditor.s3.prices import in_dollars, in_pico, prices_with

TARGETS_AT_ONCE: Final = 8
"""Largest number of targets that are audited side by side."""
AUTO_CEILING_OF: Final = {"boto3": 32}
"""Largest number of calls in flight under `auto`, for engines with threads: threads cost more than tasks."""
FIRST_OF: Final = {"direct": first_in_flight()}
"""Calls in flight with which `auto` begins. Engines on an SDK begin with AUTO_START, because an SDK's call costs as
much CPU as a TLS handshake.
"""
PLANNING: Final = 10
"""Planning may use one part in so many of the calls and dollars of a limited run."""
KEPT: Final = 0.95
"""The part of a ceiling that several ranges use together."""


class Limits(Struct, frozen=True):
    """The calls and dollars that --max-calls and --max-cost still allow; None: no limit."""

    calls: int | None = None
    dollars: float | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(settings.max_calls, settings.max_cost)

    @classmethod
    def left(cls, caller: Caller) -> Self:
        """Return what the limits leave after the calls so far."""
        return cls(caller.budget_left, caller.cost.left if caller.cost is not None else None)

    def within(self, settings: Settings) -> Settings:
        """Return the settings with these limits."""
        return replace(settings, max_calls=self.calls, max_cost=self.dollars)

    @property
    def spent(self) -> str | None:
        """The flag of a limit that leaves nothing to give; None if there is none."""
        return "--max-calls" if self.calls == 0 else "--max-cost" if self.dollars == 0 else None

    @property
    def targets_at_once(self) -> int:
        """Largest number of targets that are audited side by side under these limits. With a limit it is one, because
        calls in flight of one target could use up those of another.
        """
        return TARGETS_AT_ONCE if self == Limits() else 1

    def share(self, active: int) -> Limits:
        """Return the share of one of so many ranges that are active at once."""
        calls = None if self.calls is None else -(-self.calls // active)
        return Limits(calls, None if self.dollars is None else self.dollars / active)

    def __sub__(self, given: Limits) -> Limits:
        """Return what is left after a range was given its share."""
        return self + Limits(-(given.calls or 0), -(given.dollars or 0.0))

    def __add__(self, left: Limits) -> Limits:
        """Return what is left after a range gave back what it did not use."""
        calls = None if self.calls is None else self.calls + (left.calls or 0)
        return Limits(calls, None if self.dollars is None else self.dollars + (left.dollars or 0.0))

    def after(self, calls: int, settings: Settings) -> Limits:
        """Return what is left after so many calls that listed keys."""
        spent = None if self.dollars is None else in_dollars(calls * prices_with(settings.prices).list)
        left = self - Limits(calls, spent)
        return Limits(left.calls and max(0, left.calls), left.dollars and max(0.0, left.dollars))


def planning_calls(settings: Settings) -> int | None:
    """Return the number of calls that planning its ranges may send in a run of these settings; None: no limit."""
    limits = [] if settings.max_calls is None else [settings.max_calls // PLANNING]
    price = prices_with(settings.prices).list
    if settings.max_cost is not None and price:  # [prices] may give a server's calls for nothing
        limits.append(in_pico(settings.max_cost) // PLANNING // price)
    return min(limits, default=None)


def rate_share(max_rate: float | None, active: int) -> float | None:
    """Return the calls per second of one of so many ranges that are active at once; None: no limit.

    A range sends no more than its share in any second. It is a whole number, so that all ranges together keep max_rate,
    and a little less: calls of several processes reach the server at more uneven times.
    """
    if max_rate is None or active <= 1:
        return max_rate
    share = max_rate / active
    return share if share < 1 else max(1.0, share * KEPT // 1)


def permits_of(settings: Settings) -> tuple[int, ConcurrencyLimit]:
    """Return the largest number of calls in flight that the settings allow, and the limit that gives permits for
    them.
    """
    ceiling = settings.concurrency or AUTO_CEILING_OF.get(settings.engine, AUTO_CEILING)
    first = FIRST_OF.get(settings.engine, AUTO_START)
    return ceiling, ConcurrencyLimit(ceiling, auto=settings.concurrency is None, first=first)


def check_budget(caller: Caller, settings: Settings, least: int) -> None:
    """Raise LimitTooLow if --max-calls or --max-cost leaves too little for one object: each resumed run would stop
    there again. least: number of calls for one object and its listing.
    """
    cost = caller.cost
    if cost is not None and cost.left < cost.least(least - 1):
        raise LimitTooLow(
            f"--max-cost {settings.max_cost:.12g} is too little to audit anything: after the calls for the"
            f" bucket's settings, one object with its listing can cost {cost.least(least - 1):.6f} dollars: give more"
        )
    if caller.short_of(least):
        given, asked = settings.max_calls, caller.counts["bucket"]
        raise LimitTooLow(
            f"--max-calls {given} is too few to audit anything: the bucket's settings take {asked} calls"
            f" or more, and one object with its listing {least}: give more"
        )
