"""The first step of a state machine: claim the bucket, and divide the target into ranges of keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from auditor.audit.audit_run import Audit
from auditor.audit.begin_run import Division
from auditor.audit.range_progress import range_progress
from auditor.audit.sources.spread_file import files_spread
from auditor.config.resources import with_ledger
from auditor.config.values import MIXED
from auditor.errors import AuditorError, RunChanged, RunDamaged, RunError, RunMissing, RunStopped
from auditor.lambdas.claims import BucketBusy
from auditor.lambdas.scale import Scale
from auditor.lambdas.step_context import StepContext
from auditor.runs.paths import later_run_id, next_run_id
from auditor.runs.run_plan import RunPlan

log = logging.getLogger(__name__)


class RangesPlan:
    """Plans the ranges of one run, in as many invocations as that takes."""

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._run = context.run

    async def plan(self) -> dict[str, Any]:
        """Claim the bucket, and divide the target into ranges, or continue a run that is divided already."""
        context, scale = self._context, Scale.of(self._context.environ)
        wanted, follows = context.invocation.run_id(context.target), context.invocation.run is not None
        seconds = context.function.remaining()
        try:
            claim = await asyncio.to_thread(context.claims.take, wanted, follows=follows, seconds=seconds)
        except BucketBusy as busy:
            raise RunError(f"the audit of {context.target.uri} did not start: {busy}") from busy
        self._run = claim.run
        before = await asyncio.to_thread(self._files_spread)
        try:
            found = await self._begun(claim.begun, scale.ranges)
        except RunStopped:  # the report of S3 Inventory is long
            if await asyncio.to_thread(self._files_spread) > before:
                await context.keep_claim(self._run)
                return self._planned(scale, [], again=True)
            await asyncio.to_thread(context.claims.give_back, self._run)
            raise
        except AuditorError as error:
            dropped = isinstance(error, RunDamaged | RunMissing | RunChanged)
            await asyncio.to_thread(context.claims.give_back, self._run, dropped=dropped)
            raise
        await context.keep_claim(self._run)
        ranges = await asyncio.to_thread(lambda: list(range_progress(context.stores.store, found)))
        left = [one.id for one in ranges if not one.complete]
        log.info("%d of %d ranges are to be audited", len(left), len(ranges))
        return self._planned(scale, left, again=False)

    def _planned(self, scale: Scale, ranges: Sequence[str], *, again: bool) -> dict[str, Any]:
        """Return the answer of the plan. again: True if the next invocation continues it."""
        target, invocation = self._context.target, self._context.invocation
        event = dict(invocation.given) | {
            "bucket": target.bucket,
            "prefix": target.prefix,
            "versions": target.versions,
            "run": self._run,
            "hop": invocation.hop,
        }
        claim, at_once = self._context.claims.request, scale.at_once_with(invocation.settings.max_rate)
        return {"event": event, "claim": claim, "at_once": at_once, "ranges": ranges, "again": again}

    def _files_spread(self) -> int:
        """Return how many data files of the report of S3 Inventory are spread over the ranges. Blocks."""
        if self._context.invocation.settings.source != MIXED:
            return 0
        return files_spread(self._context.stores.store, self._context.target.bucket, self._run)

    async def _begun(self, resume: bool, ranges: int) -> RunPlan:
        """Begin the run, or continue it, and return its plan. A new run begins if this one cannot continue."""
        context = self._context
        try:
            return await self._begin(ranges, resume=resume)
        except RunMissing:
            return await self._begin(ranges, resume=False)
        except (RunChanged, RunDamaged) as error:
            if context.invocation.run is not None and context.invocation.hop == 0:  # a person named the run
                raise
            log.warning("run %s ends unfinished, and a new run begins: %s", self._run, error)
            self._run = later_run_id(next_run_id(self._run), self._run)
            left = context.function.remaining()
            await asyncio.to_thread(context.claims.take, self._run, follows=True, anew=True, seconds=left)
            return await self._begin(ranges, resume=False)

    async def _begin(self, ranges: int, *, resume: bool) -> RunPlan:
        context, settings = self._context, self._context.invocation.settings
        async with with_ledger(context.stores, settings) as resources:
            audit = Audit(
                context.target,
                settings,
                resources,
                context.stop,
                run_id=self._run,
                resume=resume,
                division=Division(ranges, least=1),  # as many ranges as the deployment asks for
            )
            return await audit.begin()
