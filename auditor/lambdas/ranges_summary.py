"""The last step of a state machine: sum up the run that its ranges have written, and tell of its end."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

from auditor.audit.conclude_run import conclude_run
from auditor.config.resources import Resources, with_ledger
from auditor.errors import AuditorError, RunComplete, RunDamaged, RunStopped, RunTaken
from auditor.lambdas.claims import BucketBusy
from auditor.lambdas.handover import MARGIN_SECONDS
from auditor.lambdas.index import with_index, write_function_index
from auditor.lambdas.range_leases import RangeLeases
from auditor.lambdas.run_end import tell_end
from auditor.lambdas.step_context import StepContext
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.runs.paths import parse_run_id
from auditor.runs.reading import RunReader
from auditor.text import counted

log = logging.getLogger(__name__)


async def summarize_ranges(context: StepContext, *, batch_rows: int | None = None) -> dict[str, Any]:
    """Sum up a divided run, in as many invocations as that takes. Return the step's answer. Raises RunTaken if another
    invocation sums up the run. batch_rows: number of objects in a batch manifest; None for the usual one.
    """
    claims, run = context.claims, RunReader(context.stores.store, context.target.bucket, context.run)
    try:
        await asyncio.to_thread(claims.take, context.run, follows=True, seconds=context.function.remaining())
    except RunComplete:  # the answer of an earlier invocation was lost
        return _answer(await asyncio.to_thread(_written, run))
    except BucketBusy as busy:
        raise RunTaken(f"the run's summary was not written: {busy}") from busy
    try:
        stores = with_index(context.invocation, context.stores)
        async with with_ledger(stores, context.invocation.settings) as resources:
            summary, rollups = await asyncio.to_thread(_combined, context, resources, batch_rows)
    except RunComplete:  # an earlier invocation died before it told of the end
        summary = await asyncio.to_thread(_written, run)
        rollups = await asyncio.to_thread(run.rollups)
    except RunStopped as stopped:
        log.info("%s", stopped)
        await context.keep_claim(context.run)
        return {"complete": False, "again": True, "runs": []}
    except AuditorError:
        await asyncio.to_thread(claims.give_back, context.run)
        raise
    fail_on = context.invocation.settings.fail_on
    await tell_end(context.function, context.environ, context.target, fail_on, summary, rollups)
    await asyncio.to_thread(claims.give_back, context.run, ended=summary.complete)
    if summary.complete:
        leases = RangeLeases(context.stores.store, context.target.bucket, context.run)
        await asyncio.to_thread(leases.forget)
    try:
        await write_function_index(context.invocation, context.stores, {})
    except AuditorError as error:
        log.warning("the index page is not written: %s", error)
    return _answer(summary)


def _combined(context: StepContext, resources: Resources, batch_rows: int | None) -> tuple[Summary, RollUps]:
    found = conclude_run(
        context.target,
        context.run,
        context.invocation.settings,
        resources,
        seconds=lambda: (datetime.now(UTC) - parse_run_id(context.run)).total_seconds(),
        time_left=lambda: context.function.remaining() - MARGIN_SECONDS,
        batch_rows=batch_rows,
    )
    if found.unfinished:
        named = ", ".join(found.unfinished[:20])
        log.error("%s not complete: %s", counted(len(found.unfinished), "range"), named)
    return found.summary, found.rollups


def _written(run: RunReader) -> Summary:
    """Return the summary of a run that is complete. Blocks."""
    summary = run.summary
    if summary is None:
        raise RunDamaged(f"run {run.run_id} is complete, and has no summary: start a new run")
    return summary


def _answer(summary: Summary) -> dict[str, Any]:
    return {"complete": summary.complete, "again": False, "runs": [summary.to_dict()]}
