"""The step of a state machine that audits one range of keys, as far as one invocation comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from auditor.audit.audit_run import RangeAudit
from auditor.audit.limits import rate_share
from auditor.audit.range_progress import range_progress
from auditor.config.resources import with_ledger
from auditor.errors import RunComplete, RunError, RunMissing, RunStopped
from auditor.lambdas.handover import MOST_FRUITLESS
from auditor.lambdas.range_leases import RangeLeases
from auditor.lambdas.step_context import StepContext
from auditor.runs.run_plan import RunPlan, load_plan
from auditor.runs.stores.base import Store

log = logging.getLogger(__name__)


def active_ranges(store: Store, plan: RunPlan, at_once: int) -> int:
    """Return how many ranges may be audited at once from now on: those that are not complete, at most at_once. Blocks.

    This number only falls. So if each range that is begun or continues gets the ceiling divided by it, the shares never
    exceed the ceiling together. The last ranges are begun last, so the search begins with them.
    """
    active = 0
    for one in range_progress(store, replace(plan, ranges=plan.ranges[::-1])):
        active += not one.complete
        if active >= at_once:
            return at_once
    return active


async def audit_one_range(context: StepContext, audit_range: Callable[..., RangeAudit]) -> dict[str, Any]:
    """Audit the range that a step names, under its lease, until it is complete or the deadline is near. Return the
    step's answer. audit_range: makes the audit; its arguments are those of RangeAudit.
    """
    step = context.step
    await context.keep_claim(context.run, at_work=True)
    store, bucket, range_id = context.stores.store, context.target.bucket, step.range_id or ""
    plan = await asyncio.to_thread(load_plan, store, bucket, context.run)
    if plan is None:
        raise RunMissing(f"run {context.run} has no plan of its ranges: start the audit of {context.target.uri} again")
    plan.range(range_id)
    leases, seconds = RangeLeases(store, bucket, context.run), context.function.remaining()
    lease = await asyncio.to_thread(leases.take, range_id, step.attempt, at_once=step.at_once, seconds=seconds)
    try:
        return await _audited(context, audit_range, plan, range_id)
    finally:
        async with context.stop.telling():
            await asyncio.to_thread(leases.give_back, lease)


async def _audited(
    context: StepContext, audit_range: Callable[..., RangeAudit], plan: RunPlan, range_id: str
) -> dict[str, Any]:
    """Audit the range with its share of the ceiling, and return the step's answer."""
    step, settings = context.step, context.invocation.settings
    active = await asyncio.to_thread(active_ranges, context.stores.store, plan, step.at_once)
    settings = replace(settings, max_rate=rate_share(settings.max_rate, active))
    audit: RangeAudit | None = None
    complete = False
    try:
        async with with_ledger(context.stores, settings) as resources:
            audit = audit_range(
                context.run,
                range_id,
                context.target,
                settings,
                resources,
                context.stop,
            )
            complete = await audit.run() is None
    except RunComplete:  # the answer of an earlier invocation was lost
        complete = True
    except RunStopped as error:
        log.warning("%s: the range continues from its last checkpoint", error)
    fruitless = 0 if complete or (audit is not None and audit.progressed) else step.fruitless + 1
    if fruitless > MOST_FRUITLESS:
        raise RunError(f"the audit of range {range_id} made no progress in {fruitless} invocations")
    log.info("range %s %s", range_id, "is complete" if complete else "continues in the next invocation")
    return {"run": context.run, "range": range_id, "complete": complete, "fruitless": fruitless}
