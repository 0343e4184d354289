"""Tell the end of a run by its metrics, its alert and its event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation
from auditor.lambdas.metrics import measure, of_run
from auditor.logs import bound
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of
from auditor.reports.run_event import event_of


class RunEnd:
    """Tells the ends of the runs of one target, in one invocation."""

    def __init__(
        self, target: Target, invocation: Invocation, context: FunctionContext, environ: Mapping[str, str]
    ) -> None:
        self._target = target
        self._fail_on = invocation.settings.fail_on
        self._context = context
        self._environ = environ

    async def tell(self, summary: Summary, rollups: RollUps, notes: Sequence[str] = ()) -> None:
        """Write the metrics of a run, and send its alert and its event.

        notes: sentences on what went wrong beside the run.
        """
        with bound(run=summary.run):
            measure(self._environ, self._context, of_run(summary), self._target)
        alert = alert_of(summary, rollups, self._fail_on, notes)
        await self._context.channels.tell(alert, event_of(summary, self._fail_on, notes))
