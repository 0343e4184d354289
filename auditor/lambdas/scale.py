"""Decide whether one function audits a target alone, or a state machine has it audited by many, range by range."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from auditor.audit.plan_ranges import MOST, plan_by_listing
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.errors import OutputError, UsageError
from auditor.lambdas.event import Invocation
from auditor.lambdas.state_machine import StateMachine
from auditor.model.target import Target
from auditor.runs.latest import last_run
from auditor.runs.run_plan import load_plan
from auditor.runs.stores.base import Store
from auditor.s3.concurrency import AUTO_CEILING
from auditor.text import visible

log = logging.getLogger(__name__)

LONGEST_ALONE: Final = 3600.0
"""Seconds of calls from which a target is divided: one function would take that long, over several invocations."""
FASTEST: Final = 5500.0
"""Calls per second that one function is expected to make without max_rate: what S3 promises for a prefix (S3 User
Guide, "Best practices design patterns")."""
MOST_ROWS: Final = 3_000_000
"""Number of objects up to which one function audits with an S3 Inventory alone: it sorts their rows on its disk of 512
MB (Lambda's default), with some 100 bytes and the key for each."""
RANGES: Final = 64
"""Number of ranges, unless the deployment says otherwise."""
AUTO: Final = "auto"
"""The number of ranges at once follows from max_rate."""
PER_FUNCTION: Final = AUTO_CEILING / 0.03
"""Calls per second that one function makes: so many in flight, each 30 ms (docs/scale.md, Assumptions)."""
LEAST_AT_ONCE: Final = 2
"""Smallest number of ranges at once that follows from max_rate: while one begins, ends or waits for the listing, the
other has calls to make."""
UNLIMITED_AT_ONCE: Final = 10
"""Number of ranges at once without max_rate."""
_MOST_AT_ONCE: Final = 1000
"""Largest number of functions at once: the concurrency that Lambda gives an account (Lambda quotas)."""


class Scale(Struct, frozen=True, kw_only=True):
    """How the deployment divides large targets. machine: ARN of the state machine; "" if targets are not divided.

    ranges: number of ranges of a target. at_once: largest number of ranges that are audited at once; None: as many as
    max_rate takes.
    """

    machine: str = ""
    ranges: int = RANGES
    at_once: int | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Scale:
        """Read the environment variables of the deployment. Raises UsageError."""
        name = "AUDITOR_MAP_CONCURRENCY"
        at_once = environ.get(name, "")
        return cls(
            machine=environ.get("AUDITOR_STATE_MACHINE", ""),
            ranges=_number(environ, "AUDITOR_MAP_RANGES", RANGES, MOST),
            at_once=None if at_once in ("", AUTO) else _number(environ, name, 1, _MOST_AT_ONCE),
        )

    def at_once_with(self, max_rate: float | None) -> int:
        """Return how many ranges are audited at once under this ceiling of calls per second; None: unlimited.

        A range waits for its share of the ceiling, and its function is paid meanwhile, so that no more are at work than
        the ceiling takes.
        """
        if self.at_once is not None:
            return self.at_once
        if max_rate is None:
            return UNLIMITED_AT_ONCE
        return min(max(LEAST_AT_ONCE, math.ceil(max_rate / PER_FUNCTION)), _MOST_AT_ONCE)


def _number(environ: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= most:
        raise UsageError(f"{name} is {text[:100]!r}: give a whole number from 1 to {most:,}")
    return int(text)


def undivided(settings: Settings) -> str | None:
    """Return the name of a setting that keeps a run from being divided; None if none does."""
    given = {"max_calls": settings.max_calls, "max_cost": settings.max_cost}
    return next((name for name, value in given.items() if value is not None), None)


def seconds_alone(calls: float, max_rate: float | None) -> float:
    """Return the seconds that one function takes for so many calls, at max_rate calls a second; None: unlimited."""
    return calls / min(max_rate or FASTEST, FASTEST)


class Expected(Struct, frozen=True):
    """About how many calls an audit makes, and how many objects (versions) it lists."""

    calls: float
    objects: float


def is_alone(found: Expected, settings: Settings) -> bool:
    """Return True if one function does an audit alone, by its time and its disk."""
    if settings.source == MIXED and found.objects > MOST_ROWS:
        return False
    return seconds_alone(found.calls, settings.max_rate) <= LONGEST_ALONE


async def expected(target: Target, settings: Settings, store: Store) -> Expected:
    """Return what an audit of the target is about: as much as its last complete run. If there is no such run, the
    bucket is listed for an estimate.

    Raises BucketError if the bucket cannot be listed.
    """
    if (found := await asyncio.to_thread(_of_last_run, target, store)) is not None:
        return found
    plan = await plan_by_listing(target, settings, 1)
    return Expected(plan.keys * (1 if settings.level == "exposure" else 2), plan.keys)  # the ACL, and HEAD


def _of_last_run(target: Target, store: Store) -> Expected | None:
    run = last_run(store, target)
    try:
        summary = None if run is None else run.summary
    except OutputError:
        return None
    if summary is None:
        return None
    calls = summary.calls
    return Expected(calls.list + calls.head + calls.acl, summary.coverage.listed)


async def machine_for(
    scale: Scale, invocation: Invocation, target: Target, store: Store, run: str, *, begun: bool
) -> StateMachine | None:
    """Return the state machine that audits the target; None if the function does it alone.

    run: ID of the run. begun: True if the run has begun: it continues as it was begun. Without a state machine the
    function works on all ranges itself.
    """
    if not target.whole:
        return None
    machine, settings = StateMachine(scale.machine, invocation.origin), invocation.settings
    if begun:
        goes_on = invocation.hop > 0 and run == invocation.run
        plan = await asyncio.to_thread(load_plan, store, target.bucket, run)
        if goes_on or plan is None or not plan.divided or not scale.machine:
            return None
        return machine
    if not scale.machine or undivided(settings) is not None:
        return None
    found = await expected(target, settings, store)
    alone = is_alone(found, settings)
    log.info(
        "the audit of %s is about %d objects and %d calls, %d minutes of one function: %s",
        visible(target.uri),
        round(found.objects),
        round(found.calls),
        round(seconds_alone(found.calls, settings.max_rate) / 60),
        "it does them alone" if alone else "the state machine divides them",
    )
    return None if alone else machine
