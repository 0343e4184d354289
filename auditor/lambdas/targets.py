"""Run the targets of an event one after the other, hand over what the deadline left, and report failures."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from auditor.aio.stop import Stop
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunComplete, RunError, RunTaken
from auditor.lambdas.alerts import alert, failure_message
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import DEADLINE, next_event, stop_before_deadline
from auditor.lambdas.metrics import emf
from auditor.logs import bound, labels
from auditor.model.summary import Resume
from auditor.model.target import Target
from auditor.text import visible

_DEFAULT_NAME: Final = "s3-auditor"

log = logging.getLogger(__name__)


class TargetSummary(Protocol):
    """The summary of an audit or a verification. run: its ID."""

    @property
    def run(self) -> str: ...

    @property
    def complete(self) -> bool: ...

    @property
    def resume(self) -> Resume | None: ...

    def to_dict(self) -> dict[str, Any]: ...


R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetWork(Generic[R]):
    """The work of a function on each target. function: "audit" or "verify"; it selects the settings of the event.

    noun: "audit" or "verification", for people. failed: the metric of a failed invocation. needed: settings that must
    have a value. opening: opens the resources that the targets share. run: works on one target until its end or the
    stop, and returns its summary.
    """

    function: str
    noun: str
    failed: str
    needed: Sequence[str] = ()
    opening: Callable[[Settings, Sequence[Target]], AbstractAsyncContextManager[R]]
    run: Callable[[Target, Invocation, R, Stop, FunctionContext], Awaitable[TargetSummary]]


async def each_target(
    work: TargetWork[R], event: Mapping[str, Any], environ: Mapping[str, str], context: FunctionContext
) -> dict[str, Any]:
    """Work on each target of the event; return `{"runs": [SUMMARY, ..]}`, a summary for each target.

    Raises AuditorError; the failure of a target is raised only after the last target.

    Shortly before the deadline the present target stops. It is handed over to the next invocation, and so is each
    target that was not begun. If there is no next invocation, the summary says how to resume the run, and a target that
    was not begun is a failure.

    A run that another invocation writes, or has ended, is left to it and named in `left`: an event can be delivered
    twice. An error is logged, counted as a metric and sent as an alert before it is raised.
    """
    with bound(requestId=context.request):
        try:
            invocation = read_event(event, environ, work.function, work.needed)
            with stop_before_deadline(context.seconds_left) as stop:
                async with work.opening(invocation.settings, invocation.targets) as resources:
                    return await _in_turn(work, invocation, resources, stop, context)
        except AuditorError as error:
            log.error("the invocation failed: %s", error)
            measure(environ, context, {work.failed: 1})
            await alert(context.topic, failure_message(work.noun, str(error)))
            raise


async def _in_turn(
    work: TargetWork[R], invocation: Invocation, resources: R, stop: Stop, context: FunctionContext
) -> dict[str, Any]:
    summaries: list[TargetSummary] = []
    failures: list[RunError] = []
    left: list[str] = []
    for target in invocation.targets:
        with bound(bucket=target.bucket, hop=invocation.hop):
            try:
                summary = None
                if not stop:
                    summary = await work.run(target, invocation, resources, stop, context)
                    summaries.append(summary)
                if stop and (summary is None or not summary.complete):
                    await _hand_over(work.noun, invocation, target, summary, context)
            except (RunTaken, RunComplete) as other:
                left.append(str(other))
            except RunError as error:
                failures.append(error)
    if len(failures) > 1:
        raise RunError("; ".join(map(str, failures)))
    if failures:
        raise failures[0]
    return {"runs": [summary.to_dict() for summary in summaries], **({"left": left} if left else {})}


async def _hand_over(
    noun: str, invocation: Invocation, target: Target, summary: TargetSummary | None, context: FunctionContext
) -> None:
    """Hand a target over to the next invocation, if there is one. summary: None for a target that was not begun."""
    if context.successor is None:
        if summary is None:
            raise RunError(f"the {noun} of {target.uri} was not begun: {DEADLINE}")
        return
    resume = summary.resume if summary is not None else None
    await context.successor.invoke(next_event(invocation.given, target, invocation.hop, resume))
    with bound(run=resume.run if resume is not None else None):
        log.info("the %s of %s is handed on to hop %d", noun, visible(target.uri), invocation.hop + 1)


def measure(
    environ: Mapping[str, str], context: FunctionContext, values: Mapping[str, float], target: Target | None = None
) -> None:
    """Emit one line of metrics. Its properties are the labels of the present log lines.

    target: of the run that the metrics are about; None for an invocation that failed.
    """
    service = environ.get("AUDITOR_SERVICE") or _DEFAULT_NAME
    context.emit(emf(values, service=service, milliseconds=int(time.time() * 1000), target=target, **labels()))
