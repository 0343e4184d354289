"""The audit function as the steps of a state machine: plan the ranges of a target, audit one range, sum up the run.

Each step is an event `{"action": "plan" | "range" | "summarize", "event": {..}, ..}`. Its member `event` is an event of
the audit function, which names the bucket, the settings and, after the plan, the run.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from auditor.audit.divided.begin import begin
from auditor.audit.divided.range import range_audit
from auditor.audit.divided.run_report import files_spread
from auditor.audit.divided.share import rate_share
from auditor.audit.divided.state import range_progress
from auditor.audit.run import Audit
from auditor.config.resources import Resources, open_stores, with_ledger
from auditor.config.values import MIXED
from auditor.errors import (
    AuditorError,
    OutputError,
    RunChanged,
    RunComplete,
    RunDamaged,
    RunError,
    RunMissing,
    RunStopped,
    RunTaken,
    UsageError,
)
from auditor.lambdas.claims import BucketBusy, Claims
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import MOST_FRUITLESS, FunctionStop, restart_event
from auditor.lambdas.map_step import MapStep
from auditor.lambdas.range_leases import RangeLeases
from auditor.lambdas.ranges_summary import RangesSummary
from auditor.lambdas.scale import Scale, undivided
from auditor.lambdas.targets import measure, tell_failure
from auditor.logs import bound
from auditor.model.target import Target
from auditor.runs.paths import later_run_id, new_run_id
from auditor.runs.plan_file import PlanFile, load_plan
from auditor.runs.stores.base import Store
from auditor.runs.stores.direct_objects import KeptTransports
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import EngineChoice, OpenEngine

log = logging.getLogger(__name__)


def active_ranges(store: Store, plan: PlanFile, at_once: int) -> int:
    """Return how many ranges may be audited at once from now on: those that are not complete, at most at_once. Blocks.

    This number only falls. So if each range that is begun or goes on gets the ceiling divided by it, the shares never
    exceed the ceiling together. The last ranges are begun last, so the search begins with them.
    """
    active = 0
    for one in range_progress(store, replace(plan, ranges=plan.ranges[::-1])):
        active += not one.complete
        if active >= at_once:
            return at_once
    return active


class DividedFunction:
    """The audit function for the events of a state machine. engines, kept: as in AuditFunction. audit_range: makes the
    audit of a range; its arguments are those of range_audit(). batch_rows: number of objects in a batch manifest; None
    for the usual one.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        engines: OpenEngine[EngineChoice] = open_engine,
        kept: KeptTransports | None = None,
        audit_range: Callable[..., Audit] = range_audit,
        batch_rows: int | None = None,
    ) -> None:
        self._environ = environ
        self._audit_range = audit_range
        self._batch_rows = batch_rows
        self._opening = partial(open_stores, engines=engines, kept=kept)

    async def handle(self, event: Mapping[str, Any], context: FunctionContext) -> dict[str, Any]:
        """Do what the event's action says, and return the step's answer. Raises AuditorError, which is logged, counted
        and sent as an alert before.

        plan: `{"event", "claim", "at_once", "ranges": [ID, ..], "again"}`, with the ranges that are not complete; if
        `again` is true, the state machine sends the event in the answer to the plan, which goes on. range:
        `{"run", "range", "complete", "fruitless"}`; the state machine sends the event again until the range is
        complete. summarize: `{"complete", "again", "runs": [SUMMARY]}`, without a summary while `again` is true; the
        state machine sends the event again until it is false.
        """
        with bound(requestId=context.request), context.stopping(context.seconds_left) as stop:
            try:
                step = MapStep.of(event)
                invocation = read_event(step.event, self._environ, "audit", (), context.request)
                context = context.with_settings(invocation.settings)
                target = _one_target(invocation)
                with bound(bucket=target.bucket, run=invocation.run, range=step.range_id):
                    return await self._in_time(step, invocation, target, stop, context)
            except RunTaken as other:  # the state machine sends the event again
                log.warning("%s", other)
                raise
            except AuditorError as error:
                log.error("the invocation failed: %s", error)
                measure(self._environ, context, {"RunsFailed": 1})
                await tell_failure("audit", error, stop, context)
                raise

    async def _in_time(
        self, step: MapStep, invocation: Invocation, target: Target, stop: FunctionStop, context: FunctionContext
    ) -> dict[str, Any]:
        answer: dict[str, Any] | None = None
        async with stop.all() as limit, self._opening(invocation.settings, [target]) as stores:
            work = _MapStepWork(
                step,
                invocation,
                target,
                stores,
                stop,
                context,
                self._environ,
                audit_range=self._audit_range,
                batch_rows=self._batch_rows,
            )
            actions = {"plan": work.plan, "range": work.range, "summarize": work.summarize}
            answer = await actions[step.action]()
        if limit.expired() or answer is None:
            again = restart_event(invocation.given, target, invocation.run)
            raise RunStopped(
                f"the step {step.action} of {target.uri} did not end before the deadline: the state machine goes on"
                f" with the event {again}"
            )
        return answer


def _one_target(invocation: Invocation) -> Target:
    if len(invocation.targets) != 1 or not invocation.targets[0].whole:
        raise UsageError("the state machine divides one whole bucket or prefix: name its bucket, and no range of keys")
    if (name := undivided(invocation.settings)) is not None:
        raise UsageError(f"{name} does not go with ranges of keys: leave it out for the state machine")
    return invocation.targets[0]


class _MapStepWork:
    """The work of one step."""

    def __init__(
        self,
        step: MapStep,
        invocation: Invocation,
        target: Target,
        stores: Resources,
        stop: FunctionStop,
        context: FunctionContext,
        environ: Mapping[str, str],
        *,
        audit_range: Callable[..., Audit],
        batch_rows: int | None,
    ) -> None:
        self._step = step
        self._audit_range = audit_range
        self._batch_rows = batch_rows
        self._invocation = invocation
        self._target = target
        self._stores = stores
        self._stop = stop
        self._context = context
        self._environ = environ
        self._run = invocation.run or ""
        self._claims = Claims(stores.store, target, invocation.hop, request=step.claim)

    async def plan(self) -> dict[str, Any]:
        """Claim the bucket, and divide the target into ranges, or go on with a run that is divided already."""
        scale = Scale.of(self._environ)
        wanted, follows = self._invocation.run_id(self._target), self._invocation.run is not None
        take = partial(self._claims.take, wanted, follows=follows, seconds=self._context.remaining())
        try:
            claim = await asyncio.to_thread(take)
        except BucketBusy as busy:
            raise RunError(f"the audit of {self._target.uri} was not begun: {busy}") from busy
        self._run = claim.run
        before = await asyncio.to_thread(self._files_spread)
        try:
            found = await self._begun(claim.begun, scale.ranges)
        except RunStopped:  # the report of S3 Inventory is long
            if await asyncio.to_thread(self._files_spread) > before:
                await self._keep_claim()
                return self._planned(scale, [], again=True)
            await asyncio.to_thread(partial(self._claims.give_back, self._run))
            raise
        except AuditorError as error:
            dropped = isinstance(error, RunDamaged | RunMissing | RunChanged)
            await asyncio.to_thread(partial(self._claims.give_back, self._run, dropped=dropped))
            raise
        await self._keep_claim()
        ranges = await asyncio.to_thread(lambda: list(range_progress(self._stores.store, found)))
        left = [one.id for one in ranges if not one.complete]
        log.info("%d of %d ranges are to be audited", len(left), len(ranges))
        return self._planned(scale, left, again=False)

    def _planned(self, scale: Scale, ranges: Sequence[str], *, again: bool) -> dict[str, Any]:
        """Return the answer of the plan. again: True if the next invocation goes on with it."""
        event = dict(self._invocation.given) | {
            "bucket": self._target.bucket,
            "prefix": self._target.prefix,
            "versions": self._target.versions,
            "run": self._run,
            "hop": self._invocation.hop,
        }
        claim, at_once = self._claims.request, scale.at_once_with(self._invocation.settings.max_rate)
        return {"event": event, "claim": claim, "at_once": at_once, "ranges": ranges, "again": again}

    def _files_spread(self) -> int:
        """Return how many data files of the report of S3 Inventory are spread over the ranges. Blocks."""
        if self._invocation.settings.source != MIXED:
            return 0
        return files_spread(self._stores.store, self._target.bucket, self._run)

    async def _begun(self, resume: bool, ranges: int) -> PlanFile:
        """Begin the run, or go on with it, and return its plan. A new run begins if this one cannot go on."""
        try:
            return await self._begin(ranges, resume=resume)
        except RunMissing:
            return await self._begin(ranges, resume=False)
        except (RunChanged, RunDamaged) as error:
            if self._invocation.run is not None and self._invocation.hop == 0:  # a person named the run
                raise
            log.warning("run %s ends unfinished, and a new run begins: %s", self._run, error)
            digest = hashlib.sha256(f"after {self._run}".encode()).digest()
            self._run = later_run_id(new_run_id(datetime.now(UTC), digest), self._run)
            seconds = self._context.remaining()
            await asyncio.to_thread(partial(self._claims.take, self._run, follows=True, seconds=seconds, anew=True))
            return await self._begin(ranges, resume=False)

    async def _begin(self, ranges: int, *, resume: bool) -> PlanFile:
        async with with_ledger(self._stores, self._invocation.settings) as resources:
            begun = await begin(
                self._target,
                self._invocation.settings,
                resources,
                self._stop,
                ranges=ranges,
                least=1,  # as many ranges as the deployment asks for
                run_id=self._run,
                resume=resume,
            )
        return begun.plan

    async def range(self) -> dict[str, Any]:
        """Audit one range, under its lease, until it is complete or the deadline is near."""
        await self._keep_claim(at_work=True)
        store, bucket, range_id = self._stores.store, self._target.bucket, self._step.range_id or ""
        plan = await asyncio.to_thread(load_plan, store, bucket, self._run)
        if plan is None:
            raise RunMissing(f"run {self._run} has no plan of its ranges: start the audit of {self._target.uri} anew")
        plan.range(range_id)
        leases, seconds = RangeLeases(store, bucket, self._run), self._context.remaining()
        take = partial(leases.take, range_id, self._step.attempt, at_once=self._step.at_once, seconds=seconds)
        lease = await asyncio.to_thread(take)
        try:
            return await self._audited(plan, range_id)
        finally:
            async with self._stop.telling():
                await asyncio.to_thread(leases.give_back, lease)

    async def _audited(self, plan: PlanFile, range_id: str) -> dict[str, Any]:
        """Audit the range with its share of the ceiling, and return the step's answer."""
        active = await asyncio.to_thread(active_ranges, self._stores.store, plan, self._step.at_once)
        settings = self._invocation.settings
        settings = replace(settings, max_rate=rate_share(settings.max_rate, active))
        audit: Audit | None = None
        complete = False
        try:
            async with with_ledger(self._stores, settings) as resources:
                audit = self._audit_range(
                    self._run, range_id, self._target, settings, resources, self._stop, hop=self._invocation.hop
                )
                complete = (await audit.run()).complete
        except RunComplete:  # the answer of an earlier invocation was lost
            complete = True
        except RunStopped as error:
            log.warning("%s: the range goes on from its last checkpoint", error)
        fruitless = 0 if complete or (audit is not None and audit.saved is not None) else self._step.fruitless + 1
        if fruitless > MOST_FRUITLESS:
            raise RunError(f"the audit of range {range_id} came no further in {fruitless} invocations")
        log.info("range %s %s", range_id, "is complete" if complete else "goes on in the next invocation")
        return {"run": self._run, "range": range_id, "complete": complete, "fruitless": fruitless}

    async def _keep_claim(self, *, at_work: bool = False) -> None:
        """Keep the claim on the bucket. at_work: as for Claims.keep(). Raises RunTaken if another start has it."""
        keep = partial(self._claims.keep, self._run, self._context.remaining(), at_work=at_work)
        try:
            await asyncio.to_thread(keep)
        except RunTaken:
            raise
        except OutputError as error:  # many invocations keep it at once, and one is enough
            log.warning("the claim on the bucket is kept by others: %s", error)

    async def summarize(self) -> dict[str, Any]:
        """Sum up the run from what its ranges have written, whatever the state machine thinks of them."""
        work = RangesSummary(
            self._invocation,
            self._target,
            self._stores,
            self._context,
            self._claims,
            self._environ,
            batch_rows=self._batch_rows,
        )
        return await work.summarize()
