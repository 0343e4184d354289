"""Decide into how many ranges of keys a target is cut, and how many functions work on the ranges at once."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

from auditor.audit.plan_ranges import MOST, plan_by_listing
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.errors import OutputError, UsageError
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.reading import last_run
from auditor.runs.stores.base import Store
from auditor.s3.calls import AUTO_CEILING
from auditor.text import counted, visible

log = logging.getLogger(__name__)

LONGEST_ALONE: Final = 3600.0
"""Seconds of calls from which a target is cut into ranges: one function would take that long, over several
invocations."""
FASTEST: Final = 5500.0
"""Calls per second that one function is expected to make without max_rate: what S3 promises for a prefix (S3 User
Guide, "Best practices design patterns")."""
MOST_ROWS: Final = 3_000_000
"""Number of objects up to which one function audits with an S3 Inventory alone: it sorts their rows on its disk of 512
MB (Lambda's default), with some 100 bytes and the key for each."""
PER_FUNCTION: Final = AUTO_CEILING / 0.03
"""Calls per second that one function makes: so many in flight, each 30 ms (docs/scale.md, Assumptions)."""
SECONDS_OF_RANGE: Final = 900.0
"""Seconds of one function's calls in one range, which is about one invocation."""
LEAST_AT_ONCE: Final = 2
"""Smallest number of ranges at once that follows from max_rate: while one begins, ends or waits for the listing, the
other has calls to make."""
UNLIMITED_AT_ONCE: Final = 10
"""Number of ranges at once without max_rate."""
PAGES: Final = 16
"""Largest number of pages that are listed for an estimate of a target without an earlier run."""
AUTO_MOST: Final = 100
"""Largest number of functions at once that follows from max_rate: a tenth of the concurrency that Lambda gives an
account."""
MOST_AT_ONCE: Final = 1000
"""Largest number of functions at once: the concurrency that Lambda gives an account (Lambda quotas)."""


class Scale(Struct, frozen=True, kw_only=True):
    """The numbers of the deployment. at_once: largest number of functions of a start that work on ranges at once; None:
    as many as max_rate takes. range_calls: calls of a range; None: as many as a function makes in an invocation.
    """

    at_once: int | None = None
    range_calls: int | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Scale:
        """Read the environment variables of the deployment. Raises UsageError."""
        at_once = environ.get("AUDITOR_MAP_CONCURRENCY", "")
        calls = environ.get("AUDITOR_RANGE_CALLS")  # for trials, in which few objects have many ranges
        return cls(
            at_once=None if at_once in ("", "auto") else _number("AUDITOR_MAP_CONCURRENCY", at_once, MOST_AT_ONCE),
            range_calls=_number("AUDITOR_RANGE_CALLS", calls, 10**9) if calls else None,
        )

    def functions(self, max_rate: float | None, buckets: int, *, lists: bool = False) -> int:
        """Return how many functions of a start work at once. max_rate: the ceiling of calls per second of each bucket;
        None: unlimited. buckets: number of buckets. lists: True if most calls are listings, with an S3 Inventory: these
        wait for each other, so that the ceiling is never reached.

        A range waits for its share of the ceiling, and its function is paid meanwhile, so that no more are at work than
        the ceiling takes.
        """
        if self.at_once is not None:
            return self.at_once
        of_ceiling = None if max_rate is None or lists else math.ceil(max_rate / PER_FUNCTION)
        each = UNLIMITED_AT_ONCE if of_ceiling is None else max(LEAST_AT_ONCE, of_ceiling)
        return min(each * max(1, buckets), AUTO_MOST)

    async def ranges(self, target: Target, settings: Settings, store: Store) -> int:
        """Return the number of ranges of a target, by its last complete run. If there is none, pages of the bucket are
        listed for an estimate. A part of a target, and a run with a limit of calls or dollars, has one range.

        Raises BucketError if the bucket cannot be listed.
        """
        if not target.whole or settings.max_calls is not None or settings.max_cost is not None:
            return 1
        calls, objects = await _expected(target, settings, store)
        number = self._ranges_of(calls, objects, settings)
        audit = f"about {round(objects)} objects and {round(calls)} calls"
        log.info("the audit of %s is %s: %s of keys", visible(target.uri), audit, counted(number, "range"))
        return number

    def _ranges_of(self, calls: float, objects: float, settings: Settings) -> int:
        """Return the number of ranges of a whole target, whose audit makes about so many calls on so many objects."""
        if self.range_calls is not None:
            return min(max(1, math.ceil(calls / self.range_calls)), MOST)
        seconds = calls / min(settings.max_rate or FASTEST, FASTEST)
        rows = objects / MOST_ROWS if settings.source == MIXED else 0
        if seconds <= LONGEST_ALONE and rows <= 1:
            return 1
        by_calls = calls / (SECONDS_OF_RANGE * PER_FUNCTION)
        return min(max(2, math.ceil(by_calls), math.ceil(rows)), MOST)


def _number(name: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 10 or not 1 <= int(text) <= most:
        raise UsageError(f"{name} is {text[:100]!r}: give a whole number from 1 to {most:,}")
    return int(text)


async def _expected(target: Target, settings: Settings, store: Store) -> tuple[float, float]:
    """Return about how many calls an audit makes, and how many objects (versions) it lists."""
    if (summary := await asyncio.to_thread(_last_summary, target, store)) is not None:
        calls = summary.calls
        return calls.list + calls.head + calls.acl, summary.coverage.listed
    plan = await plan_by_listing(target, settings, 1, most=PAGES)
    return plan.keys * (1 if settings.level == "exposure" else 2), plan.keys  # the ACL, and HEAD


def _last_summary(target: Target, store: Store) -> Summary | None:
    """Return the summary of the target's last complete run; None if there is none that can be read."""
    run = last_run(store, target)
    with suppress(OutputError):
        return None if run is None else run.summary
    return None
