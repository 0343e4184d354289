"""The audit as a function: a schedule's or a person's event in, summaries out; settings: event, environment, file."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.config.resources import Resources, open_resources
from auditor.errors import RunComplete, RunError, RunTaken
from auditor.lambdas.alerts import alert, hole_message
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import short_of
from auditor.lambdas.metrics import of_run
from auditor.lambdas.targets import EachTarget, failures_told, measure
from auditor.logs import bound
from auditor.model.finding import Verdict
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import EngineChoice, OpenEngine
from auditor.text import visible

log = logging.getLogger(__name__)


class AuditFunction:
    """Lives as long as its process. engines: opens one for each run, or lends one that is kept for the next event."""

    def __init__(
        self, environ: Mapping[str, str] = os.environ, *, engines: OpenEngine[EngineChoice] = open_engine
    ) -> None:
        self._environ = environ
        self._engines = engines

    async def handle(self, event: Mapping[str, Any], around: FunctionContext) -> dict[str, Any]:
        """`{"runs": [SUMMARY, ..]}`, one for each target. Raises AuditorError for what cannot be run: a target that
        fails keeps no other from its audit, and is raised at the end.

        Short of the deadline a run stops listing, finishes what is in flight, saves its parts and is handed on; so is
        each target that was not reached. Without a successor its summary says how to go on.

        A run that another invocation writes, or has ended, is left to that one: of an event that came twice one copy
        does the work, and the other answers with a sentence in `left`.
        """
        async with failures_told(self._environ, around, "RunsFailed", "An audit"):
            invocation = read_event(event, self._environ)
            with short_of(around.seconds_left) as stop:
                turns = EachTarget(what="audit", invocation=invocation, stop=stop, around=around)
                async with open_resources(invocation.settings, invocation.targets, self._engines) as places:
                    return await turns.all(lambda target: self._one(target, invocation, places, stop, around))

    async def _one(
        self, target: Target, invocation: Invocation, places: Resources, stop: Stop, around: FunctionContext
    ) -> Summary:
        hands_on = around.successor is not None
        audit = Audit(
            target,
            invocation.settings,
            places,
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
            measure(self._environ, around, of_run(summary, handed_on=goes_on))
        if not goes_on:
            await alert(around.topic, hole_message(summary))
        return summary


async def _run(audit: Audit) -> Summary:
    """The audit's summary; how it failed is logged while the line can still name the run."""
    try:
        return await audit.run()
    except (RunTaken, RunComplete) as other:
        log.warning("%s", other)
        raise
    except RunError as error:
        log.error("the audit failed: %s", error)
        raise


def _outcome(summary: Summary, stop: Stop | None) -> str:
    """Counts in a sentence. stop: what the run is handed on for, if it is."""
    coverage, findings = summary.coverage, sum(summary.findings.values())
    end = "complete" if summary.resume is None else f"not complete ({summary.resume.reason})"
    return (
        f"{end if stop is None else f'saved, {stop.reason}'}: listed {coverage.listed}, audited"
        f" {coverage.audited}, vanished {coverage.vanished}, undecided {coverage.undecided}, exposed"
        f" {summary.verdicts[Verdict.EXPOSED]}, findings {findings}"
    )
