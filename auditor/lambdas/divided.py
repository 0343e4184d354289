"""The audit function as the steps of a state machine: plan the ranges of a target, audit one range, sum up the run.

Each step is an event `{"action": "plan" | "range" | "summarize", "event": {..}, ..}`. Its member `event` is an event of
the audit function, which names the bucket, the settings and, after the plan, the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from auditor.audit.audit_run import RangeAudit
from auditor.config.resources import open_stores
from auditor.errors import RunStopped, UsageError
from auditor.lambdas.claims import Claims
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import FunctionStop, restart_event
from auditor.lambdas.map_step import MapStep
from auditor.lambdas.one_range import audit_one_range
from auditor.lambdas.ranges_plan import RangesPlan
from auditor.lambdas.ranges_summary import summarize_ranges
from auditor.lambdas.scale import undivided
from auditor.lambdas.step_context import StepContext
from auditor.lambdas.targets import invoked
from auditor.logs import bound
from auditor.model.target import Target
from auditor.runs.stores.direct_objects import KeptTransports
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import EngineChoice, OpenEngine


class DividedFunction:
    """The audit function for the events of a state machine. engines, kept: as in AuditFunction. audit_range: makes the
    audit of a range; its arguments are those of RangeAudit. batch_rows: number of objects in a batch manifest; None
    for the usual one.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        engines: OpenEngine[EngineChoice] = open_engine,
        kept: KeptTransports | None = None,
        audit_range: Callable[..., RangeAudit] = RangeAudit,
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
        `again` is true, the state machine sends the event in the answer to the plan, which continues. range:
        `{"run", "range", "complete", "fruitless"}`; the state machine sends the event again until the range is
        complete. summarize: `{"complete", "again", "runs": [SUMMARY]}`, without a summary while `again` is true; the
        state machine sends the event again until it is false.
        """

        def read() -> Invocation:
            return read_event(MapStep.of(event).event, self._environ, request=context.request)

        async with invoked(read, self._environ, context, leaves=True) as (invocation, stop, own):
            step, target = MapStep.of(event), _one_target(invocation)
            with bound(bucket=target.bucket, run=invocation.run, range=step.range_id):
                return await self._in_time(step, invocation, target, stop, own)

    async def _in_time(
        self, step: MapStep, invocation: Invocation, target: Target, stop: FunctionStop, context: FunctionContext
    ) -> dict[str, Any]:
        answer: dict[str, Any] | None = None
        async with stop.all() as limit, self._opening(invocation.settings, [target]) as stores:
            step_context = StepContext(
                step=step,
                invocation=invocation,
                target=target,
                stores=stores,
                stop=stop,
                function=context,
                environ=self._environ,
                claims=Claims(stores.store, target, invocation.hop, request=step.claim),
            )
            answer = await self._answer(step_context)
        if limit.expired() or answer is None:
            again = restart_event(invocation.given, target, invocation.run)
            raise RunStopped(
                f"the step {step.action} of {target.uri} did not end before the deadline: the state machine continues"
                f" with the event {again}"
            )
        return answer

    async def _answer(self, context: StepContext) -> dict[str, Any]:
        match context.step.action:
            case "plan":
                return await RangesPlan(context).plan()
            case "range":
                return await audit_one_range(context, self._audit_range)
            case _:
                return await summarize_ranges(context, batch_rows=self._batch_rows)


def _one_target(invocation: Invocation) -> Target:
    if len(invocation.targets) != 1 or not invocation.targets[0].whole:
        raise UsageError(
            "the state machine divides one whole bucket or prefix: name its bucket, without a range of keys"
        )
    if (name := undivided(invocation.settings)) is not None:
        raise UsageError(f"{name} cannot be combined with ranges of keys: leave it out for the state machine")
    return invocation.targets[0]
