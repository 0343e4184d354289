"""The run of one target of a start, in one invocation: lease its bucket, then audit it to its end, begin its ranges, or
conclude it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from msgspec import Struct

from auditor.audit.audit_run import Audit
from auditor.audit.begin_run import Division
from auditor.audit.conclude_run import conclude_run
from auditor.audit.range_progress import range_progress
from auditor.audit.sources.spread_file import files_spread
from auditor.config.resources import Resources, with_ledger
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.errors import AuditorError, RunChanged, RunComplete, RunDamaged, RunMissing, RunStopped
from auditor.lambdas.deadline import DEADLINE, MARGIN_SECONDS, in_time, opened
from auditor.lambdas.event import RangePair
from auditor.lambdas.invocation_frame import FunctionCall
from auditor.lambdas.lease import BucketBusyError, BucketLease
from auditor.lambdas.scale import Scale
from auditor.lambdas.start import StartTarget, seconds_since
from auditor.logs import bound
from auditor.model.access import Verdict
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.runs.paths import next_run_id
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan, load_plan
from auditor.runs.stores.base import Store
from auditor.text import counted, visible

log = logging.getLogger(__name__)


class TargetEnd(Struct, frozen=True, kw_only=True):
    """How one invocation leaves a target.

    run: ID of its run; None if none has begun. summary, rollups: of a run that has ended. unsent: a sentence on the
    objects that the queue did not take. pairs: the ranges that are left to the state machine. left: True if something
    is left. again: True if the next invocation continues to begin the run. sentence: for whom the target waits.
    """

    run: str | None = None
    summary: Summary | None = None
    rollups: RollUps | None = None
    unsent: str | None = None
    pairs: tuple[RangePair, ...] = ()
    left: bool = False
    again: bool = False
    sentence: str = ""


class TargetRun:
    """The work of one invocation on the run of a target. Call one of its public methods, once.

    call: with the stores of the target. start: ID of the start. wanted: ID of the run to begin, or of the run that an
    earlier invocation of the start has begun, or that a person names. settings: those of the target.
    """

    def __init__(self, call: FunctionCall, one: StartTarget, start: str, wanted: str, settings: Settings) -> None:
        self._call = call
        self._store = call.store
        self._stop = call.stop
        self._one = one
        self._target = one.target
        self._start = start
        self._wanted = wanted
        self._settings = settings
        self._run = wanted
        self._begun = False
        self._lease = BucketLease(call.store, one.target, start)

    async def whole(self) -> TargetEnd:
        """Audit the target until its end or the stop. A target of several ranges is left to the state machine, if there
        is one.
        """
        return await self._leased(self._alone)

    async def begin(self) -> TargetEnd:
        """Begin the run of the target, or take it up, and return the ranges that are not complete."""
        return await self._leased(self._ranges)

    async def conclude(self, batch_rows: int | None) -> TargetEnd:
        """Conclude the run from its folder, and free the bucket.

        batch_rows: number of objects in a batch manifest; None for the usual one. Raises RunStopped if that takes a
        further invocation, and RunTaken if another start continues the run.
        """
        await asyncio.to_thread(self._lease.renew, self._run, self._call.context.remaining())
        work = partial(
            conclude_run,
            self._target,
            self._run,
            self._settings,
            seconds=lambda: seconds_since(self._run),
            time_left=lambda: self._call.context.remaining() - MARGIN_SECONDS,
            batch_rows=batch_rows,
        )
        try:
            async with with_ledger(self._call.stores, self._call.settings) as resources:
                found = await asyncio.to_thread(work, places=resources)
        except RunComplete:  # an earlier invocation died before it told of the end
            done = await self._written()
        else:
            if left := found.unfinished:
                log.error("%s not complete: %s", counted(len(left), "range"), ", ".join(left[:20]))
            done = TargetEnd(run=self._run, summary=found.summary, rollups=found.rollups)
        await asyncio.to_thread(self._lease.give_back, self._run)
        return done

    async def _leased(self, work: Callable[[bool], Awaitable[TargetEnd]]) -> TargetEnd:
        """Lease the bucket, and work on the leased run. End the lease or keep it for the state machine, even if an
        error is raised. work: gets True if the run has begun.
        """
        take = partial(self._lease.take, self._wanted, self._call.context.remaining(), named=self._one.named)
        silent = f"{self._store.uri()} did not answer before the deadline"
        try:
            self._run, self._begun = await in_time(asyncio.to_thread(take), self._stop.flight(), silent)
        except BucketBusyError as busy:
            log.info("%s waits: %s", visible(self._target.uri), busy)
            return TargetEnd(left=True, sentence=str(busy))
        except RunStopped as error:
            self._name(error)
            raise
        with bound(run=self._run):
            try:
                done = await self._resumed(work)
            except AuditorError as error:
                complete = isinstance(error, RunComplete)
                if not complete:
                    log.error("the audit failed: %s", error)
                await self._end_lease()
                if not complete:
                    self._name(error)
                raise
            await self._end_lease(machine=done.left)
            return done

    async def _end_lease(self, *, machine: bool = False) -> None:
        async with self._stop.saving():
            await asyncio.to_thread(partial(self._lease.give_back, self._run, machine=machine))

    async def _resumed(self, work: Callable[[bool], Awaitable[TargetEnd]]) -> TargetEnd:
        """Continue the leased run. Begin a new run if the leased one cannot continue, for example because the rules
        have changed.
        """
        try:
            return await work(self._begun)
        except (RunMissing, RunChanged, RunDamaged, RunComplete) as error:
            if self._one.named:
                raise
            if isinstance(error, RunComplete):
                return await self._written()
            run = self._wanted
            if not isinstance(error, RunMissing):
                log.warning("run %s ends unfinished, and a new run begins: %s", self._run, error)
                run = next_run_id(run) if run == self._run else run
        if run != self._run:
            take = partial(self._lease.take, run, self._call.context.remaining(), anew=True)
            self._run, _ = await asyncio.to_thread(take)
        return await work(False)

    async def _alone(self, resume: bool) -> TargetEnd:
        hands_on = self._call.context.machine is not None
        try:
            if hands_on and await self._has_ranges(resume):
                return TargetEnd(run=self._run if resume else None, left=True)
            log.info("the audit of %s %s", visible(self._target.uri), "continues" if resume else "begins")
            async with self._resources() as resources:
                audit = self._audit(resources, resume=resume, hands_on=hands_on)
                summary = await audit.run()
        except RunStopped as error:
            if not hands_on or not self._stop:
                raise
            log.warning("%s: the run continues from its last checkpoint", error)
            return TargetEnd(run=self._run if self._begun else None, left=True)
        goes_on = hands_on and bool(self._stop) and not summary.complete
        log.info("%s", _outcome(summary, self._stop.reason if goes_on else None))
        if goes_on:
            return TargetEnd(run=self._run, summary=summary, left=True)
        return TargetEnd(run=self._run, summary=summary, rollups=audit.rollups, unsent=audit.unsent)

    async def _has_ranges(self, resume: bool) -> bool:
        """True if the state machine is to audit the target. A run that has begun stays as it began."""
        if not resume:
            return await self._number() > 1
        plan = await asyncio.to_thread(load_plan, self._store, self._target.bucket, self._run)
        return plan is not None and plan.divided

    async def _ranges(self, resume: bool) -> TargetEnd:
        before = await self._files_spread()
        number = 1 if resume else await self._number()
        try:
            async with self._resources() as resources:
                plan = await self._audit(resources, resume=resume, division=Division(number, least=1)).begin()
        except RunStopped:
            if await self._files_spread() > before:  # the report of S3 Inventory is long
                return TargetEnd(run=self._run, left=True, again=True)
            raise
        pairs = await asyncio.to_thread(pairs_left, self._store, plan, self._one.owner)
        log.info("%d of %d ranges are to be audited", len(pairs), len(plan.ranges))
        return TargetEnd(run=plan.run, pairs=pairs, left=True)

    async def _number(self) -> int:
        """Return the number of ranges of a new run. Raises RunStopped if the bucket does not answer before the stop."""
        counting = Scale.of(self._call.environ).ranges(self._target, self._settings, self._store)
        silent = f"{self._target.uri} did not answer before the end ({DEADLINE})"
        return await in_time(counting, self._stop.flight(), silent)

    async def _files_spread(self) -> int:
        """Return how many data files of the report of S3 Inventory are spread over the ranges."""
        if self._settings.source != MIXED:
            return 0
        return await asyncio.to_thread(files_spread, self._store, self._target.bucket, self._run)

    def _resources(self) -> AbstractAsyncContextManager[Resources]:
        """Open the ledger and the queue, for all resources. Raises RunStopped if they do not answer before the stop."""
        silent = f"the ledger or the queue did not answer before the end ({DEADLINE})"
        return opened(with_ledger(self._call.stores, self._settings), self._stop, silent)

    def _audit(self, resources: Resources, **how: Any) -> Audit:
        return Audit(
            self._target, self._settings, resources, self._stop, began=self._note_begun, run_id=self._run, **how
        )

    def _note_begun(self, run: str) -> None:
        self._begun = True

    async def _written(self) -> TargetEnd:
        """Return the end of a run that is complete: the invocation that completed it may have died before it told the
        end.
        """
        done = await asyncio.to_thread(written_end, RunReader(self._store, self._target.bucket, self._run))
        if done.summary is None:
            raise RunDamaged(f"run {self._run} is complete, and has no summary: start a new run")
        return done

    def _name(self, error: AuditorError) -> None:
        """Add to the error's text, which becomes the alert: the target, the run, and the event that continues or
        restarts it.
        """
        run = self._run if self._begun or self._one.named else None
        error.args = (self._call.invocation.failure(error, self._target, run, self._start),)


def pairs_left(store: Store, plan: RunPlan, owner: str | None) -> tuple[RangePair, ...]:
    """Return the ranges of a run that are not complete. Blocks. owner: number of the bucket's account, or None."""
    left = [one.id for one in range_progress(store, plan) if not one.complete]
    return tuple(RangePair(bucket=plan.target.bucket, run=plan.run, range=name, owner=owner) for name in left)


def written_end(run: RunReader, *, rollups: bool = True) -> TargetEnd:
    """Return the end of a run from its folder; without a summary if it has none. Blocks. rollups: True to read them."""
    summary = run.summary
    read = rollups and summary is not None
    return TargetEnd(run=run.run_id, summary=summary, rollups=run.rollups() if read else None)


def _outcome(summary: Summary, saved: str | None) -> str:
    """Return the counts of the run as a sentence for the log. saved: why the run stopped, if the state machine
    continues it; None if it ends here.
    """
    coverage, findings = summary.coverage, sum(summary.findings.values())
    end = "complete" if summary.resume is None else f"not complete ({summary.resume.reason})"
    return (
        f"{end if saved is None else f'saved, {saved}'}: listed {coverage.listed}, audited"
        f" {coverage.audited}, vanished {coverage.vanished}, undecided {coverage.undecided}, exposed"
        f" {summary.verdicts[Verdict.EXPOSED]}, findings {findings}"
    )
