"""The audit as a Lambda function. A schedule, a person or the state machine sends the event.

A start is a list of targets. One invocation audits as many of them as it can, and ends the start. If something is left,
it starts the state machine, whose steps are invocations of this function again (auditor.lambdas.audit_steps).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from auditor.aws.publish import Machine
from auditor.config.resources import Resources, open_stores
from auditor.errors import AuditorError, RunComplete, RunError
from auditor.estate.start import each
from auditor.lambdas.audit_steps import AuditStep
from auditor.lambdas.deadline import DEADLINE, FunctionStop, in_time, opened
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.invocation_frame import FunctionCall, FunctionContext, invoked
from auditor.lambdas.lease import BucketLease
from auditor.lambdas.start import StartBusyError, StartTarget, TargetPhase
from auditor.lambdas.start_work import StartWork
from auditor.logs import bound
from auditor.model.summary import Summary
from auditor.runs.stores.direct_objects import KeptTransports
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import EngineChoice, OpenEngine
from auditor.text import visible

log = logging.getLogger(__name__)


class AuditFunction:
    """The Lambda function that audits buckets. One instance handles all events that its process gets.

    engines: opens an engine for each run, or lends one that is kept open between events. kept: connections to the store
    of run folders, kept open between events. batch_rows: number of objects in a batch manifest; None for the usual one.
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        *,
        engines: OpenEngine[EngineChoice] = open_engine,
        kept: KeptTransports | None = None,
        batch_rows: int | None = None,
    ) -> None:
        self._environ = environ
        self._batch_rows = batch_rows
        self._opening = partial(open_stores, engines=engines, kept=kept)

    async def handle(self, event: Mapping[str, Any], context: FunctionContext) -> dict[str, Any]:
        """Audit the targets that the event names, and return `{"runs": [SUMMARY, ..]}`: a summary of each run that this
        invocation has ended. A step of the state machine is answered as AuditStep says.

        Shortly before the deadline, the run finishes the objects in flight and saves its state, and the state machine
        is started for all that is left; the result then has the execution's ARN in its list `executions`. An event for
        every bucket of the account returns its report as `estate`. If there is nothing to do, because the event came
        before, the result has a sentence about this in its list `left`.

        Raises AuditorError. The failure of one target is raised after the work on all other targets. Each error that is
        raised is also logged, counted as a metric, and sent as an alert.
        """
        read = partial(read_event, event, self._environ, request=context.request)
        async with invoked(read, self._opened, self._environ, context) as call:
            step = call.invocation.step
            return await (_Direct(call) if step is None else AuditStep(call, step, self._batch_rows)).answer()

    def _opened(self, invocation: Invocation, stop: FunctionStop) -> AbstractAsyncContextManager[Resources]:
        again = json.dumps(dict(invocation.event))
        silent = f"no audit was started: the reports bucket did not answer; start again with {again}"
        return opened(self._opening(invocation.settings, invocation.targets), stop, silent)


class _Direct(StartWork):
    """An invocation by a schedule or a person."""

    def __init__(self, call: FunctionCall) -> None:
        super().__init__(call, machine=False)
        self._failures: list[AuditorError] = []
        self._left: list[str] = []

    async def answer(self) -> dict[str, Any]:
        """Take the start, work on its targets, and end it, or leave the rest to the state machine."""
        try:
            start = await self._take()
        except StartBusyError as busy:
            return await self._wait_for(busy)
        if start.state.ended:
            return {"runs": [], "left": [f"the start {start.id} has ended: there is nothing to do for this event"]}
        with bound(start=start.id):
            try:
                await self._open(start)
                return await self._work()
            except BaseException:
                await self._cleaned(partial(start.save, free=True))  # a retry continues at once
                raise

    async def _cleaned(self, work: Callable[[], None]) -> None:
        """Do a last write after an error, which must reach the alert whether the write fails or not."""
        try:
            async with self._stop.telling():
                await asyncio.to_thread(work)
        except AuditorError as error:
            log.warning("the start is not freed: %s", error)

    async def _wait_for(self, busy: StartBusyError) -> dict[str, Any]:
        """Leave a start that another invocation works on. The state machine waits for it, because the other invocation
        may be dead.
        """
        log.warning("%s", busy)
        answer: dict[str, Any] = {"runs": [], "left": [str(busy)]}
        if (machine := self._call.context.machine) is not None:
            async with self._stop.handing_on():
                answer["executions"] = [await machine.start(busy.start, self._invocation.event_with(busy.start))]
        return answer

    async def _work(self) -> dict[str, Any]:
        start, machine = self._start, self._call.context.machine
        waiting = start.in_phase(TargetPhase.WAITING, TargetPhase.FAILED, TargetPhase.BEGUN)
        await each(waiting, self._at_once, self._stop, self._one)
        left = start.in_phase(TargetPhase.WAITING)
        if left and machine is not None:
            return self._answer(executions=[await self._hand_on([start.targets[place] for place in left], machine)])
        if self._account is None:
            for place in left:
                one = start.targets[place]
                self._fail(place, RunError(f"the audit of {one.uri} did not start: {one.sentence or DEADLINE}"))
        runs = await self._told(self._stop.reason if left else None)
        await self._save_end(runs)
        return self._answer(**({} if self._report is None else {"estate": self._report.to_dict()}))

    async def _told(self, stopped: str | None) -> Sequence[Summary]:
        """End the start, and return the summaries of its runs. stopped: why it ends before all of its targets; None if
        it does not.

        Raises the failures of the targets. A bucket of the account that fails is no failure, but a hole of the report.
        """
        again = self._invocation.again_with(self._start.id)
        silent = f"the end of the start was not told before the deadline: send the event {again}"
        failures = [] if self._account is not None else self._failures
        runs: Sequence[Summary] = ()
        told = True
        try:
            if not self._left:
                runs = await in_time(self._end(stopped), self._stop.telling(), silent)
        except AuditorError as error:
            if not failures:
                raise
            log.error("the alert was not sent: %s", error)
            told = False
        if failures:
            failure = RunError("; ".join(map(str, failures))) if failures[1:] else failures[0]
            failure.told = told
            raise failure
        return runs

    def _fail(self, place: int, error: AuditorError) -> None:
        self._failures.append(error)
        self._start.note(place, TargetPhase.FAILED, sentence=str(error))

    async def _one(self, place: int) -> None:
        """Audit one target, and note how far it is."""
        one = self._start.targets[place]
        again = self._invocation.again(one.target, self._start.wanted(place))
        silent = (
            f"the audit of {one.uri} did not stop before the deadline, because a server did not answer: start again"
            f" with {again}"
        )
        with bound(bucket=one.bucket):
            try:
                done = await in_time(self._run_of(place).whole(), self._stop.all(), silent)
            except RunComplete as complete:  # a person named the run
                self._left.append(str(complete))
                self._start.note(place, TargetPhase.ENDED)
                return
            except AuditorError as error:
                self._fail(place, error)
                return
            await self._note(place, done)
            if self._start.several and not done.left:
                await self._save()

    async def _hand_on(self, left: list[StartTarget], machine: Machine) -> str:
        """Start the state machine for the targets that are left, and return the ARN of the execution. Raises RunError,
        which names the targets and the event that a person can send instead.
        """
        start, invocation = self._start, self._invocation

        async def start_machine() -> str:
            await self._save(machine=True)
            return await machine.start(start.id, invocation.event_with(start.id))

        try:
            silent = "Step Functions or the reports bucket did not answer"
            arn = await in_time(start_machine(), self._stop.handing_on(), silent)
        except AuditorError as error:
            await self._cleaned(partial(self._free, left))
            again = invocation.again_with(start.id)
            if len(left) == 1 and left[0].whole:
                again = invocation.again(left[0].target, left[0].run)
            names = ", ".join(f"{one.uri}{f', run {one.run}' if one.run else ''}" for one in left[:20])
            told = f"the audit of {names} is not handed on: {error}; the next start resumes it, or the event {again}"
            raise RunError("; ".join([*map(str, self._failures), told])) from error
        if handed_on := sum(one.left and not one.sentence for one in self._done):
            self._call.measure({"RunsHandedOn": handed_on})
        log.info(
            "%d of %d targets are left to the state machine, first %s",
            len(left),
            len(start.targets),
            visible(left[0].uri),
        )
        return arn

    def _free(self, left: list[StartTarget]) -> None:
        """End the claim on the start and the leases of its buckets, for the next start. Blocks."""
        self._start.save(machine=False, free=True)
        for one in left:
            if one.run is not None:
                BucketLease(self._store, one.target, self._start.id).give_back(one.run)

    def _answer(self, **more: Any) -> dict[str, Any]:
        more |= {"left": self._left} if self._left else {}
        done = [] if self._account is not None else self._done
        return {"runs": [one.summary.to_dict() for one in done if one.summary is not None], **more}
