"""The last step of a state machine: sum up the run that its ranges have written, and tell of its end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from auditor.audit.divided.combine import combine
from auditor.config.resources import Resources, with_ledger
from auditor.errors import AuditorError, RunComplete, RunDamaged, RunStopped, RunTaken
from auditor.lambdas.claims import BucketBusy, Claims
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation
from auditor.lambdas.handover import MARGIN_SECONDS
from auditor.lambdas.index import write_function_index
from auditor.lambdas.range_leases import RangeLeases
from auditor.lambdas.run_end import RunEnd, written_rollups
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.paths import parse_run_id
from auditor.runs.reading import RunReader

log = logging.getLogger(__name__)


class RangesSummary:
    """Sums up one divided run, in as many invocations as that takes.

    invocation: the event of the audit, with the run. claims: those of the state machine's execution. clock: returns
    the seconds of a monotonic clock. batch_rows: number of objects in a batch manifest; None for the usual one.
    """

    def __init__(
        self,
        invocation: Invocation,
        target: Target,
        stores: Resources,
        context: FunctionContext,
        claims: Claims,
        environ: Mapping[str, str],
        *,
        batch_rows: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._invocation = invocation
        self._target = target
        self._stores = stores
        self._context = context
        self._claims = claims
        self._environ = environ
        self._batch_rows = batch_rows
        self._clock = clock
        self._until = clock() + context.remaining() - MARGIN_SECONDS
        self._run = invocation.run or ""

    async def summarize(self) -> dict[str, Any]:
        """Return the step's answer. Raises RunTaken if another invocation sums up the run."""
        take = partial(self._claims.take, self._run, follows=True, seconds=self._context.remaining())
        try:
            await asyncio.to_thread(take)
        except RunComplete:  # the answer of an earlier invocation was lost
            return _answer(await asyncio.to_thread(self._written))
        except BucketBusy as busy:
            raise RunTaken(f"the run is not summed up: {busy}") from busy
        try:
            async with with_ledger(self._stores, self._invocation.settings) as resources:
                summary, rollups = await asyncio.to_thread(self._combined, resources)
        except RunComplete:  # an earlier invocation died before it told of the end
            summary = await asyncio.to_thread(self._written)
            run = RunReader(self._stores.store, self._target.bucket, self._run)
            rollups = await asyncio.to_thread(written_rollups, run)
        except RunStopped as stopped:
            log.info("%s", stopped)
            await asyncio.to_thread(self._claims.keep, self._run, self._context.remaining())
            return {"complete": False, "again": True, "runs": []}
        except AuditorError:
            await asyncio.to_thread(self._claims.give_back, self._run)
            raise
        await RunEnd(self._target, self._invocation, self._context, self._environ).tell(summary, rollups)
        await asyncio.to_thread(partial(self._claims.give_back, self._run, ended=summary.complete))
        if summary.complete:
            leases = RangeLeases(self._stores.store, self._target.bucket, self._run)
            await asyncio.to_thread(leases.forget)
        try:
            await write_function_index(self._invocation, self._stores, {})
        except AuditorError as error:
            log.warning("the index page is not written: %s", error)
        return _answer(summary)

    def _combined(self, resources: Resources) -> tuple[Summary, RollUps | None]:
        found = combine(
            self._target,
            self._run,
            self._invocation.settings,
            resources,
            seconds=(datetime.now(UTC) - parse_run_id(self._run)).total_seconds(),
            time_left=lambda: self._until - self._clock(),
            batch_rows=self._batch_rows,
        )
        if found.unfinished:
            log.error("%d ranges are not complete: %s", len(found.unfinished), ", ".join(found.unfinished[:20]))
        return found.summary, found.rollups

    def _written(self) -> Summary:
        """Return the summary of a run that is complete. Blocks."""
        summary = RunReader(self._stores.store, self._target.bucket, self._run).summary
        if summary is None:
            raise RunDamaged(f"run {self._run} is complete, and has no summary: start a new run")
        return summary


def _answer(summary: Summary) -> dict[str, Any]:
    return {"complete": summary.complete, "again": False, "runs": [summary.to_dict()]}
