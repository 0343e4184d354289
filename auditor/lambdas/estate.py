"""Audit every bucket of the account as a Lambda function: one start over as many invocations, its hops, as it takes.

Each hop lists the buckets anew. What the hops before it did is in the estate.json of the start and in the run folders.
Of several deliveries of one event, one does the work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from auditor.aio.groups import task_group
from auditor.config.channels import Channels
from auditor.config.resources import Resources
from auditor.errors import AuditorError, OutputError, RunComplete, RunError, RunGivenUp, RunStopped, RunTaken
from auditor.estate.accounts import OpenedAccount, open_accounts
from auditor.estate.files import EstateFiles, folder_of
from auditor.estate.index import NAME as INDEX
from auditor.estate.index import entry_of, write_index
from auditor.estate.index_entries import index_entries
from auditor.estate.report import HOLE, UNDER_WAY, BucketEnd, Estate, report_of
from auditor.estate.select_buckets import ChosenBucket, choose, places_of
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.estate_sums import ended_before, estate_metrics
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import MOST_HOPS, FunctionStop, pause
from auditor.lambdas.metrics import measure
from auditor.lambdas.start_claims import StartClaims
from auditor.lambdas.targets import TargetWork, Worked, invoked, opened
from auditor.logs import bound
from auditor.model.estate import OWN_ACCOUNT, BucketResult, EstateReport
from auditor.model.summary import Resume, Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of
from auditor.reports.estate_text import estate_alert
from auditor.reports.summary import exit_code
from auditor.runs.paths import parse_run_id
from auditor.runs.reading import RunReader
from auditor.s3.rate import RateLimit

log = logging.getLogger(__name__)

AT_ONCE: Final = 4
"""Largest number of buckets that one invocation audits side by side."""


async def audit_account(
    work: TargetWork, event: Mapping[str, Any], environ: Mapping[str, str], context: FunctionContext
) -> dict[str, Any]:
    """Audit the buckets of the account, and return `{"runs": [], "estate": REPORT}`: the report of all hops so far.

    A bucket that fails is a hole of the report, and fails no other. Near the deadline, the next hop is started. If
    another delivery of the event has done the work, or does it, the answer has a sentence on this in its list `left`.

    work: opens the stores, and audits one bucket, until its end or the stop. Raises AuditorError if the start
    cannot be made; this is logged, counted and told.
    """
    silent = RunStopped("no audit was started: the reports bucket did not answer; send the event again")
    async with (
        invoked(partial(read_event, event, environ, request=context.request), environ, context) as (given, stop, own),
        opened(work.opening, given, stop, own, silent) as stores,
    ):
        return {"runs": [], **await _Hop(work, given, stores, stop, own, environ).answer()}


class _Hop:
    """One invocation: audit the buckets that no hop before it has ended, and report or hand on."""

    def __init__(
        self,
        work: TargetWork,
        invocation: Invocation,
        stores: Resources,
        stop: FunctionStop,
        context: FunctionContext,
        environ: Mapping[str, str],
    ) -> None:
        self._work_on = work
        self._invocation = invocation
        self._settings = invocation.settings
        self._stores = stores
        self._stop = stop
        self._context = context
        self._environ = environ
        self._id = invocation.run_id(Target("*"))  # until the claim says which start this event has begun
        self._began = parse_run_id(self._id)
        # One alert and one line of metrics are for all buckets. Each run has its event.
        self._quiet = replace(context, channels=Channels(bus=context.channels.bus), emit=lambda line: None)
        self._ceiling = RateLimit(self._settings.max_rate) if self._settings.max_rate else None
        self._before: dict[str, BucketResult] = {}
        self._ends: dict[str, BucketEnd] = {}
        self._passed: list[Worked] = []
        self._index: str | None = None

    async def answer(self) -> dict[str, Any]:
        """Claim the start, work on it, and end the claim. Return the answer without its runs."""
        opened = await open_accounts((OWN_ACCOUNT,), self._settings, self._stop)
        numbers = [one.account.id for one in opened]
        files = EstateFiles(self._stores.store, folder_of(None, numbers[0]), numbers)
        self._index = f"{files.folder}/{INDEX}"
        claims = StartClaims(self._stores.store, files.folder, self._invocation.hop, self._context.request)
        try:
            claim = await claims.taken(self._id, self._invocation.run is not None, self._context, self._stop)
        except RunTaken as other:
            log.warning("%s", other)
            return {"left": [str(other)]}
        self._id, self._began = claim.start, parse_run_id(claim.start)
        if claim.ended:
            return await self._told_before(files)
        try:
            report = await self._work(opened, files, claims)
        except BaseException:
            await self._give_back(claims)  # a retry continues at once
            raise
        return {"estate": report.to_dict()}

    async def _told_before(self, files: EstateFiles) -> dict[str, Any]:
        """Return the answer for an event whose start is reported already."""
        sentence = f"the start {self._id} has ended: there is nothing to do for this event"
        log.info("%s", sentence)
        report = await asyncio.to_thread(files.value, self._id)
        return {**({} if report is None else {"estate": report}), "left": [sentence]}

    async def _give_back(self, claims: StartClaims, **end: bool) -> None:
        """End the claim. If the store does not answer, it ends by itself after the deadline."""
        try:
            async with self._stop.telling():
                await asyncio.to_thread(claims.give_back, self._id, **end)
        except OutputError as error:
            log.warning("the claim on the start %s stays until the deadline: %s", self._id, error)

    async def _work(self, opened: Sequence[OpenedAccount], files: EstateFiles, claims: StartClaims) -> EstateReport:
        """Audit what is left, and report it or hand it on. Return the report."""
        own, earlier = await asyncio.to_thread(files.around, self._id)
        estate = Estate(
            estate=self._id,
            out=self._stores.store.uri(),
            folder=files.folder,
            opened=opened,
            choice=choose(opened, datetime.now(UTC).date().isoformat(), places_of(self._stores)),
            earlier=earlier,
            own=own,
        )
        if own is not None:
            self._before = {one.bucket: one for one in own.buckets}
            self._ends = await asyncio.to_thread(
                ended_before, self._stores.store, self._before.values(), self._settings
            )
        else:
            await asyncio.to_thread(files.write, report_of(estate, {}, stopped=UNDER_WAY))
        waiting = iter([one for one in estate.audited if one.name not in self._ends])
        async with task_group() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._each(waiting))
        left = [one for one in estate.audited if (end := self._ends.get(one.name)) is None or end.unfinished]
        stopped = self._stop.reason if left else None
        if left and self._stop and self._context.successor is not None:
            stopped = await self._handed_on(estate, files, claims)
            if stopped is None:
                return report_of(estate, self._ends, stopped=UNDER_WAY)
        seconds = (datetime.now(UTC) - self._began).total_seconds()
        report = report_of(estate, self._ends, stopped=stopped, seconds=seconds)
        if await self._end(report, files):
            await self._give_back(claims, ended=True)
        return report

    async def _each(self, waiting: Iterator[ChosenBucket]) -> None:
        while not self._stop and (one := next(waiting, None)) is not None:
            with bound(bucket=one.name, hop=self._invocation.hop):
                await self._one(one)

    async def _one(self, one: ChosenBucket) -> None:
        """Audit one bucket, and note its end."""
        target = Target(one.name, versions=self._settings.versions)
        before = self._before.get(one.name)
        mine = replace(
            self._invocation,
            targets=(target,),
            settings=one.owner.settings(self._settings),
            run=before.run if before is not None and before.unfinished else None,
            origin=self._id,
            moment=self._began,
            all_buckets=False,
        )
        worked = None
        try:
            async with self._stop.all() as limit, self._work_on.opening(mine.settings, (target,)) as own:
                worked = await self._alone(target, mine, replace(own, ceiling=self._ceiling, index=self._index))
        except RunComplete as error:  # a hop before this one died after it had ended the run
            run = mine.run_id(target)
            summary = await asyncio.to_thread(lambda: RunReader(self._stores.store, one.name, run).summary)
            self._note(one.name, run, summary, str(error))
            return
        except AuditorError as error:
            self._note(one.name, None, None, str(error))
            return
        if limit.expired() or worked is None:
            self._note(one.name, mine.run, None, "a server did not answer before the deadline", unfinished=True)
            return
        if worked.follows is not None:
            self._passed.append(worked)
            self._note(one.name, worked.follows.run, None, worked.follows.reason or "", unfinished=True)
            return
        summary = worked.summary if isinstance(worked.summary, Summary) else None
        self._note(one.name, summary.run if summary else None, summary, "its run has no summary")

    async def _alone(self, target: Target, mine: Invocation, resources: Resources) -> Worked:
        """Audit one bucket as soon as no other invocation works on its run. A hop that died may hold it for a while."""
        while True:
            try:
                return await self._work_on.run(target, mine, resources, self._stop, self._quiet)
            except RunGivenUp as newer:
                log.info("%s", newer)
                mine = replace(mine, run=None)
            except RunTaken as taken:
                await pause(self._stop, self._context.poll_seconds)
                if self._stop:
                    return Worked(None, Resume(mine.run_id(target), None, str(taken)), counts=False)

    def _note(
        self, name: str, run: str | None, summary: Summary | None, failed: str, *, unfinished: bool = False
    ) -> None:
        code = HOLE if summary is None else exit_code(summary, self._settings.fail_on)
        unfinished = unfinished or (summary is not None and not summary.complete)
        self._ends[name] = BucketEnd(run=run, summary=summary, code=code, failed=failed, unfinished=unfinished)

    async def _handed_on(self, estate: Estate, files: EstateFiles, claims: StartClaims) -> str | None:
        """Save the state, and start the next hop. Return why that failed; None if it did not."""
        hop, successor = self._invocation.hop, self._context.successor
        event = {**self._invocation.given, "all_buckets": True, "run": self._id, "hop": hop + 1}
        try:
            if hop >= MOST_HOPS:
                raise RunError(f"the start was handed over {hop} times and is still not complete: it stops here")
            async with self._stop.handing_on() as limit:
                await asyncio.to_thread(files.write, report_of(estate, self._ends, stopped=UNDER_WAY))
                await asyncio.to_thread(claims.give_back, self._id, passed=True)
                if successor is not None:
                    await successor.invoke(event)
            if limit.expired():
                raise RunError("Lambda or the reports bucket did not answer")
        except AuditorError as error:
            log.error("the start %s is not handed on: %s", self._id, error)
            for worked in self._passed:
                if worked.refused is not None:
                    await worked.refused()
            return f"it is not handed on: {error}"
        log.info("the start %s is handed on to hop %d", self._id, hop + 1)
        measure(self._environ, self._context, {"RunsHandedOn": 1})
        return None

    async def _end(self, report: EstateReport, files: EstateFiles) -> bool:
        """Write the report and the index page, count the metrics, and send the one alert. Return True if there was time
        for all of it.
        """
        async with self._stop.telling() as limit:
            await asyncio.to_thread(files.write, report)
            page = await asyncio.to_thread(self._write_page, report)
            log.info("%s", report.line)
            measure(self._environ, self._context, estate_metrics(report))
            ended = [end.summary for end in self._ends.values() if end.summary is not None]
            found = (alert_of(summary, None, self._settings.fail_on) for summary in ended)
            alert = estate_alert(report, [one for one in found if one is not None], page)
            await self._context.channels.tell(alert)
        if limit.expired():
            log.error("the report or the alert of start %s was not sent before the deadline", self._id)
        return not limit.expired()

    def _write_page(self, report: EstateReport) -> str:
        runs = {
            name: entry_of(end.summary.target, end.summary)
            for name, end in self._ends.items()
            if end.summary is not None
        }
        return write_index(self._stores.store, index_entries(report, runs), [report], folder=report.folder)
