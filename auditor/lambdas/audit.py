"""The audit as a Lambda function: the event of a schedule or a person in, summaries out."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.config.resources import Resources, open_resources
from auditor.errors import RunComplete, RunError, RunTaken
from auditor.lambdas.alerts import alert, hole_message
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation
from auditor.lambdas.metrics import of_run
from auditor.lambdas.targets import TargetWork, each_target, measure
from auditor.logs import bound
from auditor.model.finding import Verdict
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.stores.direct_objects import KeptTransports
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import EngineChoice, OpenEngine
from auditor.text import visible

log = logging.getLogger(__name__)


class AuditFunction:
    """The audit function; one instance serves all events of a process.

    engines: opens an engine for each run, or lends one that stays open between events. kept: connections to the store
    of run folders, which stay open too.
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        *,
        engines: OpenEngine[EngineChoice] = open_engine,
        kept: KeptTransports | None = None,
    ) -> None:
        self._environ = environ
        opening = partial(open_resources, engines=engines, kept=kept)
        self._work = TargetWork(function="audit", noun="audit", failed="RunsFailed", opening=opening, run=self._audit)

    async def handle(self, event: Mapping[str, Any], context: FunctionContext) -> dict[str, Any]:
        """Audit the event's targets; return `{"runs": [SUMMARY, ..]}` as each_target does.

        Near the deadline a run finishes the objects in flight, saves its parts and is handed over.
        """
        return await each_target(self._work, event, self._environ, context)

    async def _audit(
        self, target: Target, invocation: Invocation, resources: Resources, stop: Stop, context: FunctionContext
    ) -> Summary:
        hands_on = context.successor is not None
        audit = Audit(
            target,
            invocation.settings,
            resources,
            stop,
            run_id=invocation.run,
            hop=invocation.hop,
            hands_on=hands_on,
        )
        with bound(run=audit.run_id):
            log.info("the audit of %s %s", visible(target.uri), "begins" if invocation.run is None else "goes on")
            summary = await _run(audit)
            goes_on = hands_on and bool(stop) and not summary.complete
            log.info("%s", _outcome(summary, stop if goes_on else None))
            measure(self._environ, context, of_run(summary, handed_on=goes_on), target)
        if not goes_on:
            await alert(context.topic, hole_message(summary))
        return summary


async def _run(audit: Audit) -> Summary:
    """Run the audit, and return its summary. A failure is logged here, because the log line then names the run."""
    try:
        return await audit.run()
    except (RunTaken, RunComplete) as other:
        log.warning("%s", other)
        raise
    except RunError as error:
        log.error("the audit failed: %s", error)
        raise


def _outcome(summary: Summary, stop: Stop | None) -> str:
    """Return the counts in a sentence. stop: why the run is handed over; None if it is not."""
    coverage, findings = summary.coverage, sum(summary.findings.values())
    end = "complete" if summary.resume is None else f"not complete ({summary.resume.reason})"
    return (
        f"{end if stop is None else f'saved, {stop.reason}'}: listed {coverage.listed}, audited"
        f" {coverage.audited}, vanished {coverage.vanished}, undecided {coverage.undecided}, exposed"
        f" {summary.verdicts[Verdict.EXPOSED]}, findings {findings}"
    )
