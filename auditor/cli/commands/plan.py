"""The command `auditor plan`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

from auditor.audit.ranges.plan import RangePlan, check_number, plan_by_listing, plan_from_run
from auditor.cli import signals
from auditor.cli.options import settings_of, targets_of
from auditor.cli.output import first_word, heard, print_result
from auditor.cli.progress import counting, make_progress, showing
from auditor.config.resources import open_stores
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.model.target import Target
from auditor.reports.text_table import Column, text_table
from auditor.runs.latest import last_run
from auditor.text import counted, visible


def run(options: argparse.Namespace) -> int:
    """Print the ranges of the target, and return 0."""
    settings = settings_of(options)
    targets = targets_of(options, settings)
    if len(targets) > 1:
        raise UsageError("`auditor plan` cuts one target: give one")
    check_number(options.ranges)
    first_word(f"asking about {visible(targets[0].uri)}")
    plan = signals.run(_plan(targets[0], settings, options.ranges, listing=options.listing))
    print_result(options.format, plan.to_dict(), lambda: "".join(f"{line}\n" for line in _table(plan)))
    return 0


async def _plan(target: Target, settings: Settings, ranges: int, *, listing: bool) -> RangePlan:
    if target.whole and not listing:
        async with open_stores(settings, [target], hashing=False) as stores:
            last = await asyncio.to_thread(last_run, stores.store, target)
            found = None if last is None else await asyncio.to_thread(plan_from_run, target, last, ranges)
        if found is not None:
            return found
    keys = 0.0

    def note(estimate: float) -> None:
        nonlocal keys
        keys = estimate
        heard()

    async with showing(make_progress(), counting(visible(target.uri), lambda: round(keys))):
        return await plan_by_listing(target, settings, ranges, note)


def _table(plan: RangePlan) -> Iterator[str]:
    about = "" if plan.exact else "about "
    source = f"run {plan.run}" if plan.run is not None else f"{counted(plan.calls, 'listing call')}"
    ranges = counted(len(plan.ranges), "range")
    yield f"{ranges} of {visible(plan.target.uri)}, {about}{counted(plan.keys, 'key')}, by {source}"
    rows = [(f"{one.keys:,}", _bound("after", one.start_after), _bound("up to", one.stop_at)) for one in plan.ranges]
    yield from text_table([Column(right=True), Column(), Column()], rows, indent="  ")


def _bound(word: str, key: str | None) -> str:
    return "" if key is None else f"{word} {visible(key)}"
