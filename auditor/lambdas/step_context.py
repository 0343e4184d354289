"""The context of one step of a state machine: its event, the target, the stores, and the claim on the bucket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from msgspec import Struct

from auditor.config.resources import Resources
from auditor.errors import OutputError, RunTaken
from auditor.lambdas.claims import Claims
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation
from auditor.lambdas.handover import FunctionStop
from auditor.lambdas.map_step import MapStep
from auditor.model.target import Target

log = logging.getLogger(__name__)


class StepContext(Struct, frozen=True, kw_only=True):
    """The context of one step. invocation: the event of the audit that is in the step's event. function: the context of
    the function's invocation.
    """

    step: MapStep
    invocation: Invocation
    target: Target
    stores: Resources
    stop: FunctionStop
    function: FunctionContext
    environ: Mapping[str, str]
    claims: Claims

    @property
    def run(self) -> str:
        """ID of the run; "" if the event names none."""
        return self.invocation.run or ""

    async def keep_claim(self, run: str, *, at_work: bool = False) -> None:
        """Keep the claim on the bucket. at_work: as for Claims.keep(). Raises RunTaken if another start has it."""
        try:
            await asyncio.to_thread(self.claims.keep, run, self.function.remaining(), at_work=at_work)
        except RunTaken:
            raise
        except OutputError as error:  # many invocations keep it at once, and one is enough
            log.warning("others hold the claim on the bucket: %s", error)
