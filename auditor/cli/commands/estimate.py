"""The commands `auditor estimate` and `plan`: list a bucket before an audit of it, for its calls, cost and ranges."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.judging_configuration import rules_of
from auditor.audit.plan_ranges import RangePlan, check_number, plan_by_listing, plan_from_run
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import OBJECTS, Flags, whole_number
from auditor.cli.output import first_word, heard
from auditor.cli.progress import Show, columns, counting, make_progress, showing
from auditor.cli.run_targets import HOLE, each_target
from auditor.config.resources import check_ledger, ledger_of, open_stores
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.ledger.base import Ledger
from auditor.model.target import Target
from auditor.offline.estimate import EstimateRun
from auditor.offline.estimate_report import Estimate, estimate_text, summed
from auditor.reports.text_table import Column, text_table
from auditor.runs.reading import RunReader, last_run
from auditor.text import counted, visible


def declare_estimate(flags: Flags) -> None:
    """Declare the flags of `auditor estimate`.

    auditor estimate s3://my-bucket
    auditor estimate s3://my-bucket --ledger sqlite:digests.db --hash
    auditor estimate s3://my-bucket --keep acl=3d,head=8d
    """
    flags.show_daily("versions keep ledger hash format profile config")
    flags.targets()
    flags.settings("level", "only", "ignore", "semantics", "key_policies")
    flags.settings("engine", "concurrency", "max_rate", "keep", "every")
    flags.settings(out="place of the last run, whose facts --keep reuses: a directory or s3://BUCKET/PREFIX")
    flags.settings("ledger", "algorithms", "hash", "accept_cost", "batch_over")
    flags.connection()
    flags.form()


@command()
def run_estimate(frame: CommandFrame) -> int:
    """Print an estimate for each target, and their sum. Return 0, or 4 if a listing did not reach its end."""
    settings = frame.settings
    rules_of(settings, ledger=settings.ledger is not None)
    check_ledger(settings)
    done: list[Estimate] = []

    async def one(target: Target, ledger: Ledger | None, stop: Stop, show: Show) -> int:
        with ExitStack() as stack:
            last = await asyncio.to_thread(_last, frame, target, stack)
            work = EstimateRun(target, settings, ledger, stop, last=last)
            async with show(work.snapshot):
                estimate = await work.run()
        done.append(estimate)
        frame.print(estimate, lambda: estimate_text(estimate, columns()))
        return 0 if estimate.complete else HOLE

    opening: AbstractAsyncContextManager[Ledger | None] = ledger_of(settings) if settings.ledger else nullcontext()
    code = signals.run(each_target(frame.targets, opening, one, verb="estimated", kept="nothing is kept"))
    if done and len(frame.targets) > 1:
        total = summed(done)
        total = replace(total, complete=total.complete and len(done) == len(frame.targets))
        frame.print(total, lambda: estimate_text(total, columns()))
    return code


def _last(frame: CommandFrame, target: Target, stack: ExitStack) -> RunReader | None:
    """Return the last complete run whose facts `keep` takes; None if there is none. Blocks."""
    if frame.settings.keep is None or not target.whole:
        return None
    return last_run(stack.enter_context(frame.store(frame.settings.out)), target)


def declare_plan(flags: Flags) -> None:
    """Declare the flags of `auditor plan`.

    auditor plan s3://my-bucket
    auditor plan s3://my-bucket/2026/ --versions --ranges 16
    """
    flags.show_daily("versions ranges listing out format profile config")
    flags.targets()
    flags.add("--ranges N", "number of ranges (64)", OBJECTS, type=whole_number, default=64)
    flags.add("--listing", "split from a new listing, even if a run folder has the keys", OBJECTS)
    flags.settings("engine", "max_rate", out="place of the target's last run (./auditor-runs)")
    flags.connection()
    flags.form()


@command()
def run_plan(frame: CommandFrame) -> int:
    """Print the ranges of the target, and return 0."""
    if len(frame.targets) > 1:
        raise UsageError("`auditor plan` splits one target: give one")
    target = frame.targets[0]
    check_number(frame.options.ranges)
    first_word(f"asking about {visible(target.uri)}")
    plan = signals.run(_plan(target, frame.settings, frame.options.ranges, listing=frame.options.listing))
    frame.print_lines(plan.to_dict(), _table(plan))
    return 0


async def _plan(target: Target, settings: Settings, ranges: int, *, listing: bool) -> RangePlan:
    if target.whole and not listing:
        async with open_stores(settings, [target], hashing=False) as stores:
            last = await asyncio.to_thread(last_run, stores.store, target)
            if last is not None and (found := await asyncio.to_thread(plan_from_run, target, last, ranges)) is not None:
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
