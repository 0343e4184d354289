"""Audit every bucket of the account as a Lambda function: one start over as many invocations, its hops, as it takes.

Each hop lists the buckets anew. What the hops before it did is in estate.json and in the run folders.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from auditor.aio.groups import task_group
from auditor.audit.estate.accounts import open_accounts
from auditor.audit.estate.balance import HOLE, UNDER_WAY, BucketEnd, Estate, report_of
from auditor.audit.estate.choice import ChosenBucket, choose, places_of
from auditor.audit.estate.files import EstateFiles, folder_of
from auditor.audit.estate.page import index_entries
from auditor.audit.index import entry_of, write_index
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunComplete, RunError, RunStopped
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import MOST_HOPS, FunctionStop
from auditor.lambdas.targets import Worked, measure, tell_failure
from auditor.logs import bound
from auditor.model.estate import OWN_ACCOUNT, BucketOutcome, BucketResult, EstateReport
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of
from auditor.reports.estate_text import estate_alert
from auditor.reports.summary import exit_code
from auditor.runs.paths import parse_run_id
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store
from auditor.s3.rate import RateLimit

log = logging.getLogger(__name__)

AT_ONCE: Final = 4
"""Largest number of buckets that one invocation audits side by side."""
_READERS: Final = 8
"""Threads that read the summaries of earlier hops."""

Opening = Callable[[Settings, Sequence[Target]], AbstractAsyncContextManager[Resources]]
AuditTarget = Callable[[Target, Invocation, Resources, FunctionStop, FunctionContext], Awaitable[Worked]]


async def audit_account(
    opening: Opening, audit: AuditTarget, event: Mapping[str, Any], environ: Mapping[str, str], context: FunctionContext
) -> dict[str, Any]:
    """Audit the buckets of the account, and return `{"runs": [], "estate": REPORT}`: the report of all hops so far.

    A bucket that fails is a hole of the report, and fails no other. Near the deadline, the next hop is started.

    opening: opens the stores. audit: audits one bucket, until its end or the stop. Raises AuditorError if the start
    cannot be made; this is logged, counted and told.
    """
    with bound(requestId=context.request), context.stopping(context.seconds_left) as stop:
        try:
            invocation = read_event(event, environ, request=context.request)
            context = context.with_settings(invocation.settings)
            async with AsyncExitStack() as stack:
                if context.successor is not None:
                    stack.push_async_callback(context.successor.close)
                async with stop.flight() as limit:
                    stores = await stack.enter_async_context(opening(invocation.settings, ()))
                if limit.expired():
                    raise RunStopped("no audit was begun: the reports bucket did not answer; send the event again")
                hop = _Hop(opening, audit, invocation, stores, stop, context, environ)
                return {"runs": [], "estate": (await hop.work()).to_dict()}
        except AuditorError as error:
            log.error("the invocation failed: %s", error)
            measure(environ, context, {"RunsFailed": 1})
            await tell_failure("audit", error, stop, context)
            raise


class _Hop:
    """One invocation: audit the buckets that no hop before it has ended, and report or hand on."""

    def __init__(
        self,
        opening: Opening,
        audit: AuditTarget,
        invocation: Invocation,
        stores: Resources,
        stop: FunctionStop,
        context: FunctionContext,
        environ: Mapping[str, str],
    ) -> None:
        self._opening = opening
        self._audit = audit
        self._invocation = invocation
        self._settings = invocation.settings
        self._stores = stores
        self._stop = stop
        self._context = context
        self._environ = environ
        self._id = invocation.run_id(Target("*"))
        self._began = parse_run_id(self._id)
        # One alert and one line of metrics are for all buckets. Each run has its event.
        self._quiet = replace(context, topic=None, chat=None, emit=lambda line: None)
        self._ceiling = RateLimit(self._settings.max_rate) if self._settings.max_rate else None
        self._before: dict[str, BucketResult] = {}
        self._ends: dict[str, BucketEnd] = {}
        self._passed: list[Worked] = []

    async def work(self) -> EstateReport:
        store, stop = self._stores.store, self._stop
        opened = await open_accounts((OWN_ACCOUNT,), self._settings, stop)
        numbers = [one.account.id for one in opened]
        files = EstateFiles(store, folder_of(None, numbers[0]), numbers)
        own, earlier = await asyncio.to_thread(files.around, self._id)
        estate = Estate(
            estate=self._id,
            out=store.uri(),
            folder=files.folder,
            opened=opened,
            choice=choose(opened, datetime.now(UTC).date().isoformat(), places_of(self._stores)),
            earlier=earlier,
            own=own,
        )
        if own is not None:
            self._before = {one.bucket: one for one in own.buckets}
            self._ends = await asyncio.to_thread(_ended, store, self._before.values(), self._settings)
        else:
            await asyncio.to_thread(files.write, report_of(estate, {}, stopped=UNDER_WAY))
        waiting = iter([one for one in estate.audited if one.name not in self._ends])
        async with task_group() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._each(waiting))
        left = [one for one in estate.audited if (end := self._ends.get(one.name)) is None or end.unfinished]
        stopped = stop.reason if left else None
        if left and stop and self._context.successor is not None:
            stopped = await self._handed_on(estate, files)
            if stopped is None:
                return report_of(estate, self._ends, stopped=UNDER_WAY)
        seconds = (datetime.now(UTC) - self._began).total_seconds()
        report = report_of(estate, self._ends, stopped=stopped, seconds=seconds)
        await self._end(report, files)
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
            async with self._stop.all() as limit, self._opening(mine.settings, (target,)) as own:
                resources = replace(own, ceiling=self._ceiling)
                worked = await self._audit(target, mine, resources, self._stop, self._quiet)
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

    def _note(
        self, name: str, run: str | None, summary: Summary | None, failed: str, *, unfinished: bool = False
    ) -> None:
        code = HOLE if summary is None else exit_code(summary, self._settings.fail_on)
        unfinished = unfinished or (summary is not None and not summary.complete)
        self._ends[name] = BucketEnd(run=run, summary=summary, code=code, failed=failed, unfinished=unfinished)

    async def _handed_on(self, estate: Estate, files: EstateFiles) -> str | None:
        """Save the state, and start the next hop. Return why that failed; None if it did not."""
        hop, successor = self._invocation.hop, self._context.successor
        event = {**self._invocation.given, "all_buckets": True, "run": self._id, "hop": hop + 1}
        try:
            if hop >= MOST_HOPS:
                raise RunError(f"the start was handed on {hop} times and is still not complete: it stops here")
            async with self._stop.handing_on() as limit:
                await asyncio.to_thread(files.write, report_of(estate, self._ends, stopped=UNDER_WAY))
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

    async def _end(self, report: EstateReport, files: EstateFiles) -> None:
        """Write the report and the index page, count the metrics, and send the one alert."""
        async with self._stop.telling() as limit:
            await asyncio.to_thread(files.write, report)
            page = await asyncio.to_thread(self._write_page, report)
            log.info("%s", report.line)
            measure(self._environ, self._context, _metrics(report))
            ended = [end.summary for end in self._ends.values() if end.summary is not None]
            found = (alert_of(summary, None, self._settings.fail_on) for summary in ended)
            alert = estate_alert(report, [one for one in found if one is not None], page)
            await self._context.channels.tell(alert)
        if limit.expired():
            log.error("the report or the alert of start %s was not sent before the deadline", self._id)

    def _write_page(self, report: EstateReport) -> str:
        runs = {
            name: entry_of(end.summary.target, end.summary, None)
            for name, end in self._ends.items()
            if end.summary is not None
        }
        entries, remarks = index_entries(report, runs)
        return write_index(self._stores.store, entries, remarks, folder=report.folder)


def _ended(store: Store, before: Collection[BucketResult], settings: Settings) -> dict[str, BucketEnd]:
    """Return the ends of the buckets that earlier hops have ended, each with the summary of its run. Blocks.

    A run whose summary is gone is not among them: its bucket is audited again.
    """
    audited = [one for one in before if one.outcome is BucketOutcome.AUDITED and one.run is not None]
    with ThreadPoolExecutor(_READERS) as threads:
        summaries = threads.map(lambda one: RunReader(store, one.bucket, one.run or "").summary, audited)
        found = {
            one.bucket: BucketEnd(run=one.run, summary=summary, code=exit_code(summary, settings.fail_on))
            for one, summary in zip(audited, summaries, strict=True)
            if summary is not None
        }
    for one in before:
        if one.outcome is BucketOutcome.HOLE and not one.unfinished:
            found[one.bucket] = BucketEnd(run=one.run, code=HOLE, failed=one.sentence)
    return found


def _metrics(report: EstateReport) -> dict[str, float]:
    """Return the metrics of a start: the sums over its runs. Metrics of each bucket would cost more than the audit."""
    lost = report.counts.holes + sum(one.hole is not None for one in report.accounts)
    return {
        "Objects": report.coverage.listed,
        "Undecided": report.coverage.undecided,
        "Exposed": report.verdicts["exposed"],
        **{f"Findings{severity.capitalize()}": number for severity, number in report.findings.items()},
        "Seconds": report.seconds,
        "RunsComplete": int(report.complete),
        "RunsIncomplete": int(not report.complete),
        **({"RunsFailed": lost} if lost else {}),
    }
