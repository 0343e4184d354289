"""Audit one target of a start in one invocation: lease its bucket, and audit it to its end, or begin its ranges."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

from msgspec import Struct

from auditor.audit.audit_run import Audit
from auditor.audit.begin_run import Division
from auditor.audit.range_progress import range_progress
from auditor.audit.sources.spread_file import files_spread
from auditor.config.resources import Resources, with_ledger
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.errors import (
    AuditorError,
    RunChanged,
    RunComplete,
    RunDamaged,
    RunError,
    RunMissing,
    RunStopped,
)
from auditor.lambdas.deadline import DEADLINE
from auditor.lambdas.event import RangePair
from auditor.lambdas.invocation_frame import FunctionCall, opened
from auditor.lambdas.lease import BucketBusy, BucketLease, Leased
from auditor.lambdas.scale import Scale
from auditor.lambdas.start import StartTarget
from auditor.logs import bound
from auditor.model.access import Verdict
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.runs.paths import next_run_id
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan, load_plan
from auditor.runs.stores.base import Store
from auditor.text import visible

log = logging.getLogger(__name__)


class TargetEnd(Struct, frozen=True, kw_only=True):
    """How one invocation leaves a target.

    run: ID of its run; None if none has begun. summary, rollups: of a run that has ended. unsent: a sentence on the
    objects that the queue did not take. pairs: the ranges that are left to the state machine. left: True if something
    is left. again: True if the next invocation continues to begin the run. sentence: why the target failed, or for whom
    it waits.
    """

    run: str | None = None
    summary: Summary | None = None
    rollups: RollUps | None = None
    unsent: str | None = None
    pairs: tuple[RangePair, ...] = ()
    left: bool = False
    again: bool = False
    sentence: str = ""


class TargetAudit:
    """The work of one invocation on one target. call: with the stores of the target. start: ID of the
    start. wanted: ID of the run to begin, or of the run that an earlier invocation of the start has begun, or that a
    person names. settings: those of the target.
    """

    def __init__(self, call: FunctionCall, one: StartTarget, start: str, wanted: str, settings: Settings) -> None:
        self._call = call
        self._one = one
        self._target = one.target
        self._start = start
        self._wanted = wanted
        self._settings = settings
        self._stores = call.stores
        self._stop = call.stop
        self._run = wanted
        self._begun = False
        self._lease = BucketLease(call.store, one.target, start)

    async def whole(self) -> TargetEnd:
        """Audit the target until its end or the stop. A target of several ranges is left to the state machine, if there
        is one.
        """
        leased = await self._leased()
        if isinstance(leased, TargetEnd):
            return leased
        return await self._guarded(leased, self._alone)

    async def begin(self) -> TargetEnd:
        """Begin the run of the target, or take it up, and return the ranges that are not complete."""
        leased = await self._leased()
        if isinstance(leased, TargetEnd):
            return leased
        return await self._guarded(leased, self._ranges)

    async def _leased(self) -> Leased | TargetEnd:
        """Lease the bucket. Return the end of the target if another run has the bucket."""
        found: list[Leased] = []
        take = partial(self._lease.take, self._wanted, self._call.context.remaining(), named=self._one.named)
        try:
            async with self._stop.flight():
                found.append(await asyncio.to_thread(take))
        except BucketBusy as busy:
            log.info("%s waits: %s", visible(self._target.uri), busy)
            return TargetEnd(left=True, sentence=str(busy))
        if not found:
            silent = RunStopped(f"{self._stores.store.uri()} did not answer before the deadline")
            self._name(silent)
            raise silent
        return found[0]

    async def _guarded(self, leased: Leased, work: Callable[[bool], Awaitable[TargetEnd]]) -> TargetEnd:
        """Work on the leased run, and end the lease or keep it for the state machine, even if an error is raised."""
        self._run, self._begun = leased.run, leased.begun
        if leased.begun and not leased.same and not self._one.named:
            log.info("run %s of an earlier start is not finished: this start resumes it", leased.run)
        with bound(run=self._run):
            try:
                done = await self._resumed(work)
            except RunComplete:
                await self._end_lease(self._lease.give_back)
                raise
            except AuditorError as error:
                log.error("the audit failed: %s", error)
                await self._end_lease(self._lease.give_back)
                self._name(error)
                raise
            await self._end_lease(self._lease.keep_for_machine if done.left else self._lease.give_back)
            return done

    async def _end_lease(self, end: Callable[[str], None]) -> None:
        async with self._stop.saving():
            await asyncio.to_thread(end, self._run)

    async def _resumed(self, work: Callable[[bool], Awaitable[TargetEnd]]) -> TargetEnd:
        """Continue the leased run. Begin a new run if the leased one cannot continue, for example because the rules
        have changed.
        """
        named = self._one.named
        try:
            return await work(self._begun)
        except RunMissing:
            if named:
                raise
            return await self._anew(self._wanted, work)
        except (RunChanged, RunDamaged) as error:
            if named:
                raise
            log.warning("run %s ends unfinished, and a new run begins: %s", self._run, error)
            return await self._anew(next_run_id(self._run) if self._run == self._wanted else self._wanted, work)
        except RunComplete:
            if named:
                raise
            run = RunReader(self._stores.store, self._target.bucket, self._run)
            return await asyncio.to_thread(written_end, run)

    async def _anew(self, run: str, work: Callable[[bool], Awaitable[TargetEnd]]) -> TargetEnd:
        if run != self._run:
            take = partial(self._lease.take, run, self._call.context.remaining(), anew=True)
            self._run = (await asyncio.to_thread(take)).run
        return await work(False)

    async def _alone(self, resume: bool) -> TargetEnd:
        stop, hands_on = self._stop, self._call.context.machine is not None
        try:
            if hands_on and await self._has_ranges(resume):
                return TargetEnd(run=self._run if resume else None, left=True)
            log.info("the audit of %s %s", visible(self._target.uri), "continues" if resume else "begins")
            async with self._resources() as resources:
                audit = self._new_audit(resources, resume=resume, hands_on=hands_on)
                summary = await audit.run()
        except RunComplete:
            raise
        except RunError as error:
            if isinstance(error, RunStopped) and hands_on and stop:
                log.warning("%s: the run continues from its last checkpoint", error)
                return TargetEnd(run=self._run if self._begun else None, left=True)
            raise
        goes_on = hands_on and bool(stop) and not summary.complete
        log.info("%s", _outcome(summary, stop.reason if goes_on else None))
        if goes_on:
            return TargetEnd(run=self._run, summary=summary, left=True)
        return TargetEnd(run=self._run, summary=summary, rollups=audit.rollups, unsent=audit.unsent)

    async def _has_ranges(self, resume: bool) -> bool:
        """True if the state machine is to audit the target. A run that has begun stays as it began."""
        if not resume:
            return await self._number() > 1
        plan = await asyncio.to_thread(load_plan, self._stores.store, self._target.bucket, self._run)
        return plan is not None and plan.divided

    async def _ranges(self, resume: bool) -> TargetEnd:
        before = await asyncio.to_thread(self._files_spread)
        number = 1 if resume else await self._number()
        try:
            async with self._resources() as resources:
                plan = await self._new_audit(resources, resume=resume, division=Division(number, least=1)).begin()
        except RunStopped:
            if await asyncio.to_thread(self._files_spread) > before:  # the report of S3 Inventory is long
                return TargetEnd(run=self._run, left=True, again=True)
            raise
        pairs = await asyncio.to_thread(pairs_left, self._stores.store, plan, self._one.owner)
        log.info("%d of %d ranges are to be audited", len(pairs), len(plan.ranges))
        return TargetEnd(run=plan.run, pairs=pairs, left=True)

    async def _number(self) -> int:
        """Return the number of ranges of a new run. Raises RunStopped if the bucket does not answer before the stop."""
        async with self._stop.flight() as limit:
            found = await Scale.of(self._call.environ).ranges(self._target, self._settings, self._stores.store)
        if limit.expired():
            raise RunStopped(f"{self._target.uri} did not answer before the end ({self._stop.reason})")
        return found

    def _files_spread(self) -> int:
        """Return how many data files of the report of S3 Inventory are spread over the ranges. Blocks."""
        if self._settings.source != MIXED:
            return 0
        return files_spread(self._stores.store, self._target.bucket, self._run)

    def _resources(self) -> AbstractAsyncContextManager[Resources]:
        """Open the ledger and the queue, for all resources. Raises RunStopped if they do not answer before the stop."""
        silent = "the ledger or the queue did not answer before the end"
        return opened(with_ledger(self._stores, self._settings), self._stop, f"{silent} ({DEADLINE})")

    def _new_audit(
        self, resources: Resources, *, resume: bool, hands_on: bool = False, division: Division | None = None
    ) -> Audit:
        return Audit(
            self._target,
            self._settings,
            resources,
            self._stop,
            began=self._note_begun,
            run_id=self._run,
            resume=resume,
            hands_on=hands_on,
            division=division,
        )

    def _note_begun(self, run: str) -> None:
        self._begun = True

    def _name(self, error: AuditorError) -> None:
        """Add to the error's text, which becomes the alert: the target, the run, and the event that continues or
        restarts it.
        """
        run = self._run if self._begun or self._one.named else None
        given = self._call.invocation
        again = given.again(self._target, run) if self._target.whole else given.again_with(self._start)
        if run is None:
            error.args = (f"{self._target.uri}: {error}; start again with the event {again}",)
        else:
            error.args = (f"{self._target.uri}, run {run}: {error}; the next start resumes it, or the event {again}",)


def pairs_left(store: Store, plan: RunPlan, owner: str | None) -> tuple[RangePair, ...]:
    """Return the ranges of a run that are not complete. Blocks. owner: number of the bucket's account, or None."""
    left = [one.id for one in range_progress(store, plan) if not one.complete]
    return tuple(RangePair(bucket=plan.target.bucket, run=plan.run, range=name, owner=owner) for name in left)


def written_end(run: RunReader) -> TargetEnd:
    """Return the end of a run that is complete: the invocation that completed it may have died before it told the end.
    Blocks.
    """
    if (summary := run.summary) is None:
        raise RunDamaged(f"run {run.run_id} is complete, and has no summary: start a new run")
    return TargetEnd(run=run.run_id, summary=summary, rollups=run.rollups())


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
