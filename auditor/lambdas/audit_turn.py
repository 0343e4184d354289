"""Audit one target in one invocation of the audit function: claim its bucket, continue its run, end the claim."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.config.resources import Resources, with_ledger
from auditor.errors import (
    AuditorError,
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
from auditor.lambdas.event import Invocation
from auditor.lambdas.handover import DEADLINE, MOST_FRUITLESS, FunctionStop, pause, restart_event
from auditor.lambdas.run_end import tell_end
from auditor.lambdas.scale import Scale, machine_for
from auditor.lambdas.targets import Worked
from auditor.logs import bound
from auditor.model.access import Verdict
from auditor.model.summary import Resume, Summary
from auditor.model.target import Target
from auditor.runs.paths import later_run_id, next_run_id, same_start
from auditor.runs.reading import RunReader
from auditor.text import visible

log = logging.getLogger(__name__)

DIVIDED: Final = "the state machine continues"


class AuditTurn:
    """The work of one invocation on one target: claim the target's bucket, audit the target, end the claim."""

    def __init__(
        self,
        target: Target,
        invocation: Invocation,
        resources: Resources,
        stop: FunctionStop,
        context: FunctionContext,
        environ: Mapping[str, str],
        scale: Scale,
    ) -> None:
        self._target = target
        self._scale = scale
        self._invocation = invocation
        self._resources = resources
        self._stop = stop
        self._context = context
        self._tell = partial(tell_end, context, environ, target, invocation.settings.fail_on)
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
                log.info("run %s of an earlier start is not finished: this start resumes it", claim.run)
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
                await pause(self._stop, self._context.poll_seconds)
                if self._stop:
                    if self._context.successor is None:
                        raise RunError(f"the audit of {self._target.uri} did not start: {busy}") from busy
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
        """End the claim on the bucket, unless the store does not answer. end: the arguments of Claims.give_back."""
        async with self._stop.saving() if end else self._stop.telling():
            await asyncio.to_thread(self._claims.give_back, self._run, **end)

    async def _resumed(self, claim: Claim) -> Worked:
        """Continue the claimed run. Begin a new run if the claimed one cannot continue, for example because the rules
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
            return await self._anew(next_run_id(self._run) if self._run == self._wanted else self._wanted)
        except RunComplete:
            if claim.untold:
                await self._tell_end()
            if not claim.untold or self._run == self._wanted:
                raise
            return await self._anew(self._wanted)

    async def _anew(self, run: str) -> Worked:
        if run != self._run:
            later = later_run_id(run, self._run)
            take = partial(self._claims.take, later, follows=True, seconds=self._context.remaining(), anew=True)
            await asyncio.to_thread(take)
            self._run = later
        return await self._alone_or_divided(resume=False)

    async def _alone_or_divided(self, *, resume: bool) -> Worked:
        """Audit the target, or leave it to the state machine if one function would take too long."""
        given, store = self._invocation, self._resources.store
        machine = await machine_for(self._scale, given, self._target, store, self._run, begun=resume)
        if machine is None:
            return await self._one(resume=resume)
        return Worked(None, Resume(self._run, None, DIVIDED), machine=machine)

    async def _tell_end(self) -> None:
        """Report the end of a complete run. The run's last invocation may have died before it did so."""
        run = RunReader(self._resources.store, self._target.bucket, self._run)
        summary = await asyncio.to_thread(lambda: run.summary)
        if summary is not None:
            await self._tell(summary, await asyncio.to_thread(run.rollups))

    async def _one(self, *, resume: bool) -> Worked:
        stop, hands_on = self._stop, self._context.successor is not None
        saved: Resume | None = None
        with bound(run=self._run):
            log.info("the audit of %s %s", visible(self._target.uri), "continues" if resume else "begins")
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
                    log.warning("%s: the run continues from its last checkpoint", error)
                    return Worked(None, saved or Resume(self._run, None, DEADLINE))
                log.error("the audit failed: %s", error)
                raise
            goes_on = hands_on and bool(stop) and not summary.complete
            log.info("%s", _outcome(summary, stop if goes_on else None))
            if goes_on and not self._may_go_on(saved):
                log.error("the audit made no progress in %d invocations", self._fruitless)
                raise RunError(f"the audit made no progress in {self._fruitless} invocations")
            if goes_on:
                return Worked(summary, summary.resume)
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
            hands_on=self._context.successor is not None,
        )

    def _note_begun(self, run: str) -> None:
        self._begun = True

    def _may_go_on(self, saved: Resume | None) -> bool:
        """True if the run may continue in the next invocation: not if too many in a row have made no progress.

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
            error.args = (f"{self._target.uri}: {error}; start again with the event {again}",)
        else:
            error.args = (f"{self._target.uri}, run {run}: {error}; the next start resumes it, or the event {again}",)


def _outcome(summary: Summary, stop: Stop | None) -> str:
    """Return the counts of the run as a sentence for the log.

    stop: the stop, if the run continues in the next invocation; None if the run ends here.
    """
    coverage, findings = summary.coverage, sum(summary.findings.values())
    end = "complete" if summary.resume is None else f"not complete ({summary.resume.reason})"
    return (
        f"{end if stop is None else f'saved, {stop.reason}'}: listed {coverage.listed}, audited"
        f" {coverage.audited}, vanished {coverage.vanished}, undecided {coverage.undecided}, exposed"
        f" {summary.verdicts[Verdict.EXPOSED]}, findings {findings}"
    )
