"""The audit as a Lambda function. A schedule or a person sends the event; the function returns the summaries of its
runs.

A run goes on over several invocations if needed. These are its hops.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.config.resources import Resources, open_stores, with_ledger
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
)
from auditor.lambdas.claims import BucketBusy, Claim, Claims
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.divided import DividedFunction
from auditor.lambdas.estate import audit_account
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import DEADLINE, FunctionStop, restart_event
from auditor.lambdas.index import write_function_index
from auditor.lambdas.map_step import is_step
from auditor.lambdas.metrics import of_run
from auditor.lambdas.scale import Division, Scale
from auditor.lambdas.targets import TargetWork, Worked, each_target, measure
from auditor.logs import bound
from auditor.model.access import Verdict
from auditor.model.rollup import RollUps
from auditor.model.summary import Resume, Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of
from auditor.reports.run_event import event_of
from auditor.runs.paths import later_run_id, new_run_id, same_start
from auditor.runs.reading import RunReader
from auditor.runs.stores.direct_objects import KeptTransports
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import EngineChoice, OpenEngine
from auditor.text import visible

log = logging.getLogger(__name__)

DIVIDED: Final = "the state machine goes on"
MOST_FRUITLESS: Final = 2
"""Largest number of hops in a row that make no progress before the run fails. The first hop of a short function may end
before the first object, and a server may be silent for half an hour."""


class AuditFunction:
    """The Lambda function that audits buckets. One instance handles all events that its process gets.

    engines: opens an engine for each run, or lends one that is kept open between events. kept: connections to the store
    of run folders, kept open between events.
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        *,
        engines: OpenEngine[EngineChoice] = open_engine,
        kept: KeptTransports | None = None,
    ) -> None:
        self._environ = environ
        self._divided = DividedFunction(environ, engines=engines, kept=kept)
        self._work = TargetWork(
            function="audit",
            noun="audit",
            failed="RunsFailed",
            handed_on="RunsHandedOn",
            opening=partial(open_stores, engines=engines, kept=kept),
            run=self._audit,
            names_runs=True,
            ended=write_function_index,
        )

    async def handle(self, event: Mapping[str, Any], context: FunctionContext) -> dict[str, Any]:
        """Audit the targets that the event names, and return `{"runs": [SUMMARY, ..]}`, one summary for each target.

        Near the deadline, the run finishes the objects in flight and saves its state; the next invocation goes on with
        it. An event for every bucket of the account returns its report too (auditor.lambdas.estate). A state machine's
        event names an action, and is answered as DividedFunction says.
        """
        if is_step(event):
            return await self._divided.handle(event, context)
        with suppress(AuditorError):  # below, a wrong event is refused and told
            if read_event(event, self._environ).all_buckets:
                return await audit_account(self._work.opening, self._audit, event, self._environ, context)
        return await each_target(self._work, event, self._environ, context)

    def _scale_of(self, invocation: Invocation) -> Scale:
        """Return how targets are divided. An invocation for all buckets of the account audits each of them itself."""
        scale = Scale.of(self._environ)
        return replace(scale, machine="") if invocation.all_buckets else scale

    async def _audit(
        self, target: Target, invocation: Invocation, resources: Resources, stop: FunctionStop, context: FunctionContext
    ) -> Worked:
        division = Division(self._scale_of(invocation), invocation, target, resources.store)
        turn = _Turn(target, invocation, resources, stop, context, self._environ, division)
        return await turn.work()


class _Turn:
    """The work of one invocation on one target: claim the target's bucket, audit the target, end the claim."""

    def __init__(
        self,
        target: Target,
        invocation: Invocation,
        resources: Resources,
        stop: FunctionStop,
        context: FunctionContext,
        environ: Mapping[str, str],
        division: Division,
    ) -> None:
        self._target = target
        self._division = division
        self._invocation = invocation
        self._resources = resources
        self._stop = stop
        self._context = context
        self._environ = environ
        self._begun = False
        self._fruitless = 0
        self._wanted = invocation.run_id(target)
        self._run = self._wanted
        self._claims = Claims(resources.store, target, invocation.hop)

    async def work(self) -> Worked:
        try:
            claim = await self._claimed()
            if claim is None:
                return Worked(None, Resume(self._wanted, None, DEADLINE), counts=False)
            self._run, self._begun, self._fruitless = claim.run, claim.begun, claim.fruitless
            if same_start(claim.run, self._wanted):
                self._wanted = claim.run
            elif claim.begun:
                log.info("run %s of an earlier start is not finished: this start goes on with it", claim.run)
            return await self._guarded(claim)
        except RunTaken as other:
            with bound(run=self._run):
                log.warning("%s", other)
            raise

    async def _claimed(self) -> Claim | None:
        """Claim the target's bucket, as soon as no other run has it. Return None if the stop comes first."""
        told = False
        found: list[Claim] = []
        follows = self._invocation.run is not None
        while True:
            take = partial(self._claims.take, self._wanted, follows=follows, seconds=self._context.remaining())
            try:
                async with self._stop.flight():
                    found.append(await asyncio.to_thread(take))
                if not found:
                    silent = RunStopped(f"{self._resources.store.uri()} did not answer before the deadline")
                    self._name(silent)
                    raise silent
                return found[0]
            except BucketBusy as busy:
                if not told:
                    log.info("%s waits: %s", visible(self._target.uri), busy)
                told = True
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), self._context.poll_seconds)
                if self._stop:
                    if self._context.successor is None:
                        raise RunError(f"the audit of {self._target.uri} was not begun: {busy}") from busy
                    return None

    async def _guarded(self, claim: Claim) -> Worked:
        """Audit the target, and end the claim on its bucket afterwards, even if an error is raised."""
        try:
            worked = await self._resumed(claim)
        except RunComplete:
            await self._give_back(ended=True)
            raise
        except AuditorError as error:
            if isinstance(error, RunTaken):
                await self._give_back()
                raise
            await self._give_back(dropped=not self._begun or isinstance(error, RunDamaged | RunMissing | RunChanged))
            self._name(error)
            raise
        if worked.follows is None:
            await self._give_back(ended=isinstance(worked.summary, Summary) and worked.summary.complete)
            return worked
        await self._give_back(passed_on=True, fruitless=self._fruitless)
        return replace(worked, refused=self._give_back)

    async def _give_back(self, **end: Any) -> None:
        """End the claim on the bucket. If the store does not answer, the claim ends by itself after the deadline.

        end: the arguments of Claims.give_back.
        """
        try:
            async with self._stop.saving() if end else self._stop.telling():
                await asyncio.to_thread(self._claims.give_back, self._run, **end)
        except OutputError as error:
            log.warning("the claim on the bucket stays until the deadline: %s", error)

    async def _resumed(self, claim: Claim) -> Worked:
        """Go on with the claimed run. Begin a new run if the claimed one cannot go on, for example because the rules
        have changed.
        """
        asked_for = self._invocation.run is not None and self._invocation.hop == 0  # a person named the run
        try:
            return await self._alone_or_divided(resume=claim.begun)
        except RunMissing:
            if asked_for:
                raise
            return await self._anew(self._wanted)
        except (RunChanged, RunDamaged) as error:
            if asked_for:
                raise
            log.warning("run %s ends unfinished, and a new run begins: %s", self._run, error)
            digest = hashlib.sha256(f"after {self._run}".encode()).digest()
            return await self._anew(
                new_run_id(datetime.now(UTC), digest) if self._run == self._wanted else self._wanted
            )
        except RunComplete:
            if claim.untold:
                await self._tell_end()
            if not claim.untold or self._run == self._wanted:
                raise
            return await self._anew(self._wanted)

    async def _anew(self, run: str) -> Worked:
        if run != self._run:
            self._run = later_run_id(run, self._run)
            take = partial(self._claims.take, self._run, follows=True, seconds=self._context.remaining(), anew=True)
            await asyncio.to_thread(take)
        return await self._alone_or_divided(resume=False)

    async def _alone_or_divided(self, *, resume: bool) -> Worked:
        """Audit the target, or leave it to the state machine if one function would take too long."""
        machine = await self._division.machine(self._run, begun=resume)
        if machine is None:
            return await self._one(resume=resume)
        return Worked(None, Resume(self._run, None, DIVIDED), machine=machine)

    async def _tell_end(self) -> None:
        """Report the end of a complete run by metrics and alert. The run's last invocation may have died before it did
        so.
        """
        run = RunReader(self._resources.store, self._target.bucket, self._run)
        summary = await asyncio.to_thread(lambda: run.summary)
        if summary is not None:
            with bound(run=self._run):
                measure(self._environ, self._context, of_run(summary), self._target)
            await self._tell(summary, await asyncio.to_thread(_groups_of, run))

    async def _tell(self, summary: Summary, groups: RollUps | None, notes: Sequence[str] = ()) -> None:
        fail_on = self._invocation.settings.fail_on
        alert, event = alert_of(summary, groups, fail_on, notes), event_of(summary, fail_on, notes)
        await self._context.channels.tell(alert, event)

    async def _one(self, *, resume: bool) -> Worked:
        stop, hands_on = self._stop, self._context.successor is not None
        saved: Resume | None = None
        with bound(run=self._run):
            log.info("the audit of %s %s", visible(self._target.uri), "goes on" if resume else "begins")
            try:
                async with self._with_ledger() as resources:
                    audit = self._new_audit(resources, resume)
                    try:
                        summary = await audit.run()
                    finally:
                        saved = audit.saved
            except (RunTaken, RunComplete):
                raise
            except RunError as error:
                if isinstance(error, RunStopped) and hands_on and stop and self._may_go_on(saved):
                    log.warning("%s: the run goes on from its last checkpoint", error)
                    return Worked(None, saved or Resume(self._run, None, DEADLINE))
                log.error("the audit failed: %s", error)
                raise
            goes_on = hands_on and bool(stop) and not summary.complete
            log.info("%s", _outcome(summary, stop if goes_on else None))
            if goes_on and not self._may_go_on(saved):
                log.error("the audit came no further in %d invocations", self._fruitless)
                raise RunError(f"the audit came no further in {self._fruitless} invocations")
            if goes_on:
                return Worked(summary, summary.resume)
            measure(self._environ, self._context, of_run(summary), self._target)
        await self._tell(summary, audit.rollups, [audit.unsent] if audit.unsent else [])
        return Worked(summary)

    @asynccontextmanager
    async def _with_ledger(self) -> AsyncIterator[Resources]:
        """Open the ledger and the queue, and yield all resources.

        Raises RunStopped if they do not answer before the stop. The bucket is claimed already, so that its claim can
        count this invocation as one without progress.
        """
        async with AsyncExitStack() as stack:
            async with self._stop.flight() as limit:
                opening = with_ledger(self._resources, self._invocation.settings)
                resources = await stack.enter_async_context(opening)
            if limit.expired():
                raise RunStopped(f"the ledger or the queue did not answer before the end ({self._stop.reason})")
            yield resources

    def _new_audit(self, resources: Resources, resume: bool) -> Audit:
        return Audit(
            self._target,
            self._invocation.settings,
            resources,
            self._stop,
            began=self._note_begun,
            run_id=self._run,
            resume=resume,
            hop=self._invocation.hop,
            hands_on=self._context.successor is not None,
        )

    def _note_begun(self, run: str) -> None:
        self._begun = True

    def _may_go_on(self, saved: Resume | None) -> bool:
        """True if the run may go on in the next invocation: not if too many invocations in a row have made no progress.

        saved: the state that this invocation has saved; None if it made no progress.
        """
        self._fruitless = 0 if saved is not None else self._fruitless + 1
        return self._fruitless <= MOST_FRUITLESS

    def _name(self, error: AuditorError) -> None:
        """Add to the error's text, which becomes the alert: the target, the run, and the event that continues or
        restarts it.
        """
        run = self._run if self._begun or self._invocation.run is not None else None
        again = restart_event(self._invocation.given, self._target, run)
        if run is None:
            error.args = (f"{self._target.uri}: {error}; begin again with the event {again}",)
        else:
            error.args = (
                f"{self._target.uri}, run {run}: {error}; the next start goes on with it, or the event {again}",
            )


def _groups_of(run: RunReader) -> RollUps | None:
    """Return the roll-ups of a run; None if they cannot be read: an alert then names no groups. Blocks."""
    with suppress(OutputError):
        return run.rollups()
    return None


def _outcome(summary: Summary, stop: Stop | None) -> str:
    """Return the counts of the run as a sentence for the log.

    stop: the stop, if the run goes on in the next invocation; None if the run ends here.
    """
    coverage, findings = summary.coverage, sum(summary.findings.values())
    end = "complete" if summary.resume is None else f"not complete ({summary.resume.reason})"
    return (
        f"{end if stop is None else f'saved, {stop.reason}'}: listed {coverage.listed}, audited"
        f" {coverage.audited}, vanished {coverage.vanished}, undecided {coverage.undecided}, exposed"
        f" {summary.verdicts[Verdict.EXPOSED]}, findings {findings}"
    )
