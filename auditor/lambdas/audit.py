"""The audit as a Lambda function. A schedule or a person sends the event; the function returns the summaries of its
runs.

A run continues over several invocations if needed. These are its hops.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from auditor.config.resources import Resources, open_stores
from auditor.errors import AuditorError
from auditor.lambdas.audit_turn import AuditTurn
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.divided import DividedFunction
from auditor.lambdas.estate import audit_account
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import FunctionStop
from auditor.lambdas.index import with_index, write_function_index
from auditor.lambdas.map_step import is_step
from auditor.lambdas.scale import Scale
from auditor.lambdas.targets import TargetWork, Worked, each_target
from auditor.model.target import Target
from auditor.runs.stores.direct_objects import KeptTransports
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import EngineChoice, OpenEngine


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

        Near the deadline, the run finishes the objects in flight and saves its state; the next invocation continues
        it. An event for every bucket of the account returns its report too (auditor.lambdas.estate). A state machine's
        event names an action, and is answered as DividedFunction says.
        """
        if is_step(event):
            return await self._divided.handle(event, context)
        with suppress(AuditorError):  # below, a wrong event is refused and told
            if read_event(event, self._environ).all_buckets:
                return await audit_account(self._work, event, self._environ, context)
        return await each_target(self._work, event, self._environ, context)

    def _scale_of(self, invocation: Invocation) -> Scale:
        """Return how targets are divided. An invocation for all buckets of the account audits each of them itself."""
        scale = Scale.of(self._environ)
        return replace(scale, machine="") if invocation.all_buckets else scale

    async def _audit(
        self, target: Target, invocation: Invocation, resources: Resources, stop: FunctionStop, context: FunctionContext
    ) -> Worked:
        scale = self._scale_of(invocation)
        places = with_index(invocation, resources)
        return await AuditTurn(target, invocation, places, stop, context, self._environ, scale).work()
