"""Tell the end of a run by its metrics, its alert and its event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.lambdas.context import FunctionContext
from auditor.lambdas.metrics import measure, of_run
from auditor.logs import bound
from auditor.model.finding import FailOn, Severity
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of, event_of


async def tell_end(
    context: FunctionContext,
    environ: Mapping[str, str],
    target: Target,
    fail_on: Severity | FailOn | None,
    summary: Summary,
    rollups: RollUps,
    notes: Sequence[str] = (),
) -> None:
    """Write the metrics of a run, and send its alert and its event. notes: sentences on what went wrong beside the
    run.
    """
    with bound(run=summary.run):
        measure(environ, context, of_run(summary), target)
    alert = alert_of(summary, rollups, fail_on, notes)
    await context.channels.tell(alert, event_of(summary, fail_on, notes))
