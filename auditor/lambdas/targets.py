"""What functions that audit or verify have in common: targets in turn, what is not reached handed on, failures told."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from auditor.aio.stop import Stop
from auditor.errors import AuditorError, RunComplete, RunError, RunTaken
from auditor.lambdas.alerts import alert, failure_message
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation
from auditor.lambdas.handover import DEADLINE, next_event
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


One = Callable[[Target], Awaitable[TargetSummary]]
"""Does a target's turn, or as much of it as there is time for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EachTarget:
    """One event's work. what: "audit" or "verification"."""

    what: str
    invocation: Invocation
    stop: Stop
    around: FunctionContext

    async def all(self, one: One) -> dict[str, Any]:
        """`{"runs": [SUMMARY, ..]}`. Raises RunError at the end for the targets that failed.

        A run that another invocation writes, or has ended, is left to that one and named in `left`.
        """
        summaries: list[TargetSummary] = []
        failures: list[RunError] = []
        left: list[str] = []
        for target in self.invocation.targets:
            with bound(bucket=target.bucket, hop=self.invocation.hop):
                try:
                    summary = None
                    if not self.stop:
                        summary = await one(target)
                        summaries.append(summary)
                    if self.stop and (summary is None or not summary.complete):
                        await self._hand_on(target, summary)
                except (RunTaken, RunComplete) as other:
                    left.append(str(other))
                except RunError as error:
                    failures.append(error)
        if len(failures) > 1:
            raise RunError("; ".join(map(str, failures)))
        if failures:
            raise failures[0]
        return {"runs": [summary.to_dict() for summary in summaries], **({"left": left} if left else {})}

    async def _hand_on(self, target: Target, summary: TargetSummary | None) -> None:
        if self.around.successor is None:
            if summary is None:
                raise RunError(f"the {self.what} of {target.uri} was not begun: {DEADLINE}")
            return
        resume, hop = summary.resume if summary is not None else None, self.invocation.hop
        await self.around.successor.invoke(next_event(self.invocation.given, target, hop, resume))
        with bound(run=resume.run if resume is not None else None):
            log.info("the %s of %s is handed on to hop %d", self.what, visible(target.uri), hop + 1)


def measure(environ: Mapping[str, str], around: FunctionContext, values: Mapping[str, float]) -> None:
    """One line of metrics; its properties are the labels that the logs have."""
    service = environ.get("AUDITOR_SERVICE") or _DEFAULT_NAME
    around.emit(emf(values, service=service, milliseconds=int(time.time() * 1000), **labels()))


@asynccontextmanager
async def failures_told(
    environ: Mapping[str, str], around: FunctionContext, metric: str, what: str
) -> AsyncIterator[None]:
    """An AuditorError inside is logged, measured as one of `metric`, alerted as the failure of `what`, and goes on."""
    with bound(requestId=around.request):
        try:
            yield
        except AuditorError as error:
            log.error("the invocation failed: %s", error)
            measure(environ, around, {metric: 1})
            await alert(around.topic, failure_message(what, str(error)))
            raise
