"""Work on the targets of an event one after the other, leave the rest to next invocations, and report failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunComplete, RunError, RunStopped, RunTaken
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import DEADLINE, FunctionStop, next_event, restart_event
from auditor.lambdas.metrics import measure
from auditor.lambdas.state_machine import StateMachine
from auditor.logs import bound
from auditor.model.summary import Resume, Summary
from auditor.model.target import Target
from auditor.text import visible

if TYPE_CHECKING:
    from auditor.verify.summary import VerifySummary

log = logging.getLogger(__name__)


class Worked(Struct, frozen=True):
    """The result of this invocation's work on one target.

    summary: None if the run has no summary yet. follows: where the next invocation continues; None if the work is done.
    counts: False if the work was not begun, so that no metric counts it as handed on. refused: called if the next
    invocation cannot be started. machine: the state machine that continues the work; None for the function itself.
    """

    summary: Summary | VerifySummary | None
    follows: Resume | None = None
    counts: bool = True
    refused: Callable[[], Awaitable[None]] | None = None
    machine: StateMachine | None = None


class TargetWork(Struct, frozen=True, kw_only=True):
    """The kind of work that a Lambda function does on each target: an audit or a verification.

    function: "audit" or "verify", which decides the settings that an event may have. noun: "audit" or "verification",
    for messages. failed: name of the metric for a failed invocation. handed_on: name of the metric for a run that the
    next invocation continues. needed: settings that must have a value. opening: opens the resources that all targets
    share. run: works on one target, until the target's end or the stop. names_runs: True if an event may name a run
    that no invocation has begun yet. ended: called at the end of an invocation in which a target has ended, with the
    sentences of the targets that failed; None if there is nothing to do then.
    """

    function: str
    noun: str
    failed: str
    handed_on: str
    needed: Sequence[str] = ()
    opening: Callable[[Settings, Sequence[Target]], AbstractAsyncContextManager[Resources]]
    run: Callable[[Target, Invocation, Resources, FunctionStop, FunctionContext], Awaitable[Worked]]
    names_runs: bool = False
    ended: Callable[[Invocation, Resources, Mapping[Target, str]], Awaitable[None]] | None = None


async def each_target(
    work: TargetWork, event: Mapping[str, Any], environ: Mapping[str, str], context: FunctionContext
) -> dict[str, Any]:
    """Work on each target of the event, and return `{"runs": [SUMMARY, ..]}`, one summary for each target.

    Shortly before the deadline, each target that was not begun is left to a next invocation. Then the present target
    stops, and is left to a next invocation too. If the function may not invoke itself, the summary of the present
    target says how to resume its run, and each target that was not begun is a failure.

    A target that is too large for one function is handed on to the state machine; the result then has the execution's
    ARN in its list `executions`.

    An event can come twice. If another invocation works on a run or has ended it, the result has only a sentence about
    this run, in its list `left`.

    Raises AuditorError. The failure of one target is raised after the work on all other targets. Each error that is
    raised is also logged, counted as a metric, and sent as an alert.
    """
    read = partial(read_event, event, environ, work.function, work.needed, context.request)
    async with (
        invoked(read, environ, context, noun=work.noun, failed=work.failed) as (invocation, stop, own),
        opened(work.opening, invocation, stop, own, _unopened(work, invocation)) as resources,
    ):
        return await Turns(work, invocation, resources, stop, own, environ).all()


@asynccontextmanager
async def invoked(
    read: Callable[[], Invocation],
    environ: Mapping[str, str],
    context: FunctionContext,
    *,
    noun: str = "audit",
    failed: str = "RunsFailed",
    leaves: bool = False,
) -> AsyncIterator[tuple[Invocation, FunctionStop, FunctionContext]]:
    """Read an event, and yield its content, the stop, and the context with the channels that the settings name. Each
    AuditorError is logged, counted and told before it continues.

    noun: of the work, for messages. failed: name of the metric for a failed invocation. leaves: True if RunTaken is no
    failure, because the event is sent again.
    """
    with bound(requestId=context.request), context.stopping(context.seconds_left) as stop:
        try:
            invocation = read()
            context = context.with_settings(invocation.settings)
            yield invocation, stop, context
        except AuditorError as error:
            if leaves and isinstance(error, RunTaken):
                log.warning("%s", error)
                raise
            log.error("the invocation failed: %s", error)
            measure(environ, context, {failed: 1})
            await context.tell_failure(noun, error, stop)
            raise


@asynccontextmanager
async def opened(
    opening: Callable[[Settings, Sequence[Target]], AbstractAsyncContextManager[Resources]],
    invocation: Invocation,
    stop: FunctionStop,
    context: FunctionContext,
    silent: RunStopped,
) -> AsyncIterator[Resources]:
    """Open the resources of an invocation. silent: raised if they do not answer before the stop."""
    async with AsyncExitStack() as stack:
        if context.successor is not None:
            stack.push_async_callback(context.successor.close)
        async with stop.flight() as limit:
            resources = await stack.enter_async_context(opening(invocation.settings, invocation.targets))
        if limit.expired():
            raise silent
        yield resources


def _unopened(work: TargetWork, invocation: Invocation) -> RunStopped:
    hop = None if work.names_runs else invocation.hop
    events = (restart_event(invocation.given, target, invocation.run, hop) for target in invocation.targets)
    again = "; ".join(events)
    silent = "the ledger or the reports bucket did not answer"
    return RunStopped(f"no {work.noun} was started: {silent}; start again with the event {again}")


class Turns:
    """Works on the targets of one event, one after the other."""

    def __init__(
        self,
        work: TargetWork,
        invocation: Invocation,
        resources: Resources,
        stop: FunctionStop,
        context: FunctionContext,
        environ: Mapping[str, str],
    ) -> None:
        self._work = work
        self._invocation = invocation
        self._resources = resources
        self._stop = stop
        self._context = context
        self._environ = environ
        self._waiting = list(invocation.targets)
        self._summaries: list[Summary | VerifySummary] = []
        self._failures: list[AuditorError] = []
        self._left: list[str] = []
        self._failed: dict[Target, str] = {}
        self._executions: list[str] = []
        self._ended = False

    async def all(self) -> dict[str, Any]:
        handing = asyncio.create_task(self._hand_on_waiting())
        try:
            while self._waiting and not self._stop:
                target = self._waiting.pop(0)
                with bound(bucket=target.bucket, hop=self._invocation.hop):
                    await self._guarded(target, self._one(target))
            if self._stop:
                await handing
        finally:
            handing.cancel()
        await self._end()
        if len(self._failures) > 1:
            raise RunError("; ".join(map(str, self._failures)))
        if self._failures:
            raise self._failures[0]
        more = {"left": self._left, "executions": self._executions}
        return {
            "runs": [summary.to_dict() for summary in self._summaries],
            **{name: value for name, value in more.items() if value},
        }

    async def _end(self) -> None:
        """Do what comes after all targets. Its failure is logged, and fails no run."""
        if self._work.ended is None or not (self._ended or self._failed):
            return
        try:
            async with self._stop.telling() as limit:
                await self._work.ended(self._invocation, self._resources, self._failed)
            if limit.expired():
                log.warning("the index page is not written: there was no time left")
        except AuditorError as error:
            log.warning("the index page is not written: %s", error)

    async def _hand_on_waiting(self) -> None:
        """Wait for the stop, and then leave each target that was not begun to a next invocation.

        This does not wait for the present target, which may never end if a server is silent.
        """
        await self._stop.wait()
        waiting, self._waiting = self._waiting, []
        for target in waiting:
            with bound(bucket=target.bucket, hop=self._invocation.hop):
                await self._guarded(target, self._hand_on_unbegun(target))

    async def _guarded(self, target: Target, turn: Awaitable[None]) -> None:
        try:
            await turn
        except (RunTaken, RunComplete) as other:
            self._left.append(str(other))
        except AuditorError as error:
            self._failures.append(error)
            self._failed[target] = str(error)

    async def _one(self, target: Target) -> None:
        worked = None
        async with self._stop.all() as limit:
            worked = await self._work.run(target, self._invocation, self._resources, self._stop, self._context)
        if limit.expired() or worked is None:
            run = self._invocation.run if self._work.names_runs else None  # a verification begins anew
            again = restart_event(self._invocation.given, target, run)
            raise RunStopped(
                f"the {self._work.noun} of {target.uri} did not stop before the deadline, because a server did not"
                f" answer: start again with {again}"
            )
        if worked.summary is not None:
            self._summaries.append(worked.summary)
        if worked.follows is None:
            self._ended = True
            return
        try:
            await self._hand_on(target, worked.follows, worked.machine)
        except RunError:
            if worked.refused is not None:
                async with self._stop.telling():
                    await worked.refused()
            raise
        if worked.counts:
            with bound(run=worked.follows.run):
                measure(self._environ, self._context, {self._work.handed_on: 1})

    async def _hand_on_unbegun(self, target: Target) -> None:
        invocation = self._invocation
        if self._context.successor is None:
            raise RunError(f"the {self._work.noun} of {target.uri} did not start: {DEADLINE}")
        run = invocation.run
        if run is None and self._work.names_runs and target.start_after is None:
            run = invocation.run_id(target)
        await self._hand_on(target, None if run is None else Resume(run, None, DEADLINE), None)

    async def _hand_on(self, target: Target, follows: Resume | None, machine: StateMachine | None) -> None:
        """Start the next invocation for a target, or the state machine.

        follows: where the run continues; None if no run was begun. Raises RunError, which names the target, the run and
        the event that a person can send instead.
        """
        invocation, successor = self._invocation, machine or self._context.successor
        run = follows.run if follows is not None else None
        with bound(run=run):
            try:
                event = next_event(invocation.given, target, invocation.hop, follows)
                async with self._stop.handing_on() as limit:
                    if successor is not None:
                        await successor.invoke(event)
                if limit.expired():
                    raise RunError(f"{'Lambda' if machine is None else 'Step Functions'} did not answer the invocation")
            except RunError as error:
                audits = self._work.names_runs
                again = restart_event(invocation.given, target, run, None if audits else invocation.hop + 1)
                named = f"{target.uri}, run {run}" if run is not None else target.uri
                log.error("%s is not handed on: %s", named, error)
                raise RunError(
                    f"the {self._work.noun} of {named} is not handed on: {error};"
                    f" {'the next start resumes it, or' if audits else 'resume it with'} the event {again}"
                ) from error
            if machine is None:
                log.info(
                    "the %s of %s is handed on to hop %d", self._work.noun, visible(target.uri), invocation.hop + 1
                )
            else:
                self._executions += machine.started
                log.info("the %s of %s is handed on to the state machine", self._work.noun, visible(target.uri))
