"""End a start: the metrics and the event of each run, and for all of them the report, the index page and one alert."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.config.settings import Settings
from auditor.errors import AuditorError
from auditor.estate.accounts import OpenedAccount
from auditor.estate.index import MOST, NAME, entry_of, index_entries, latest_entry, write_index
from auditor.estate.report import HOLE, UNDER_WAY, BucketEnd, report_of
from auditor.estate.start import OpenedEstate, open_estate
from auditor.lambdas.event import EVERY, Invocation, configured_targets
from auditor.lambdas.invocation_frame import FunctionCall
from auditor.lambdas.metrics import of_run
from auditor.lambdas.start import FunctionStart, StartTarget, TargetPhase, seconds_since
from auditor.logs import bound
from auditor.model.alert import Alert
from auditor.model.estate import OWN_ACCOUNT, EstateReport
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of, event_of
from auditor.reports.estate_text import estate_alert
from auditor.reports.start_text import start_alert
from auditor.reports.summary import exit_code
from auditor.runs.reading import RunReader

log = logging.getLogger(__name__)

_READERS: Final = 8
"""Threads that read the summaries of ended runs."""


class EndedRun(Struct, frozen=True, kw_only=True):
    """A run of a start that has ended. unsent: a sentence on the objects that the queue did not take; None if it took
    all.
    """

    target: Target
    summary: Summary
    rollups: RollUps | None
    unsent: str | None = None


class Ended(Struct, frozen=True):
    """A start that has ended. runs: those that have a summary. report: for every bucket of an account; else None."""

    runs: Sequence[EndedRun]
    report: EstateReport | None = None


class StartEnd:
    """Tells the end of each run of a start, and of the start."""

    def __init__(self, call: FunctionCall, start: FunctionStart) -> None:
        self._call = call
        self._invocation = call.invocation
        self._start = start
        self._stores = call.stores
        self._channels = call.context.channels
        self._fail_on = call.settings.fail_on
        self._refused: list[str] = []

    async def tell_run(self, run: EndedRun) -> None:
        """Write the metrics of a run, and send its event. Metrics of each bucket of an account would cost more than the
        audit, so the start has its own.
        """
        summary = run.summary
        with bound(run=summary.run):
            if not self._invocation.all_buckets:
                self._call.measure(of_run(summary), run.target)
            try:
                await self._channels.tell(None, event_of(summary, self._fail_on, _notes(run)))
            except AuditorError as error:  # the alert of the start tells it, and the other runs continue
                log.error("the event of the run was not sent: %s", error)
                self._refused.append(str(error))

    async def end(
        self, ended: Sequence[EndedRun], account: OpenedEstate | None, *, stopped: str | None = None
    ) -> Ended:
        """Write the report and the index page, and send the one alert.

        ended: the runs that this invocation has ended; the others are read. account: the account's buckets; None for
        named targets. stopped: why the start ends before all of them; None if it does not.
        """
        runs = await asyncio.to_thread(self._runs, ended)
        if account is not None:
            return Ended(runs, await self._end_account(runs, account, stopped))
        failed = {one.target: one.sentence for one in self._start.targets if one.phase is TargetPhase.FAILED}
        try:
            await asyncio.to_thread(self._write_index, failed)
        except AuditorError as error:
            log.warning("the index page is not written: %s", error)
        alerts = [alert_of(one.summary, one.rollups, self._fail_on, _notes(one)) for one in runs]
        found = [one for one in alerts if one is not None]
        lost = [*failed.values(), *dict.fromkeys(self._refused)]
        await self._channels.tell(start_alert(len(self._start.targets), found, lost))
        return Ended(runs)

    async def _end_account(self, runs: Sequence[EndedRun], account: OpenedEstate, stopped: str | None) -> EstateReport:
        summaries = {one.target.bucket: one.summary for one in runs}
        known = [one for one in self._start.targets if one.done or one.run is not None]
        ends = {one.bucket: _bucket_end(one, summaries.get(one.bucket), self._fail_on) for one in known}
        report = report_of(account.estate, ends, stopped=stopped, seconds=seconds_since(self._start.id))
        await asyncio.to_thread(account.files.write, report)
        page = await asyncio.to_thread(self._write_page, report, summaries)
        log.info("%s", report.line)
        lost = report.counts.holes + sum(one.hole is not None for one in report.accounts) + len(self._refused)
        self._call.measure({**of_run(report), **({"RunsFailed": lost} if lost else {})})
        found = [alert_of(one.summary, None, self._fail_on) for one in runs]
        alerts: list[Alert] = [one for one in found if one is not None]
        await self._channels.tell(estate_alert(report, alerts, page))
        return report

    def _runs(self, ended: Sequence[EndedRun]) -> list[EndedRun]:
        """Return all runs of the start that have ended, in the order of its targets. Blocks."""
        known = {(one.target.bucket, one.summary.run): one for one in ended}

        def read(one: StartTarget) -> EndedRun | None:
            if (found := known.get((one.bucket, one.run or ""))) is not None:
                return found
            run = RunReader(self._stores.store, one.bucket, one.run or "")
            if (summary := run.summary) is None:
                return None
            rollups = None if self._invocation.all_buckets else run.rollups()
            return EndedRun(target=one.target, summary=summary, rollups=rollups)

        wanted = [self._start.targets[place] for place in self._start.in_phase(TargetPhase.ENDED)]
        with ThreadPoolExecutor(_READERS) as threads:
            return [one for one in threads.map(read, wanted) if one is not None]

    def _write_index(self, failed: Mapping[Target, str]) -> None:
        """Write the index page, from the last complete run of each configured target. Blocks."""
        store, sentences = self._stores.store, {target.uri: sentence for target, sentence in failed.items()}
        if targets := indexed_targets(self._invocation, self._start):
            write_index(store, [replace(latest_entry(store, one), failed=sentences.get(one.uri)) for one in targets])

    def _write_page(self, report: EstateReport, summaries: Mapping[str, Summary]) -> str:
        runs = {name: entry_of(summary.target, summary) for name, summary in summaries.items()}
        return write_index(self._stores.store, index_entries(report, runs), [report], folder=report.folder)


def indexed_targets(invocation: Invocation, start: FunctionStart) -> tuple[Target, ...]:
    """Return the targets of the index page; () if the start writes none: for every bucket of an account the start has a
    page of its own, and a target that is not configured is on no page.
    """
    if invocation.settings.buckets == EVERY:
        return ()
    targets = configured_targets(invocation.settings)
    names = {target.uri for target in targets}
    if len(targets) > MOST or names.isdisjoint(one.target.uri for one in start.targets):
        return ()
    return targets


def with_index(call: FunctionCall, start: FunctionStart, account: OpenedEstate | None) -> FunctionCall:
    """Return the invocation with the path of the index page in its stores, if the start writes one."""
    index = NAME if indexed_targets(call.invocation, start) else None
    return replace(call, stores=replace(call.stores, index=index if account is None else account.index))


def _notes(run: EndedRun) -> list[str]:
    return [run.unsent] if run.unsent else []


def _bucket_end(one: StartTarget, summary: Summary | None, fail_on: object) -> BucketEnd:
    code = HOLE if summary is None else exit_code(summary, fail_on)  # type: ignore[arg-type]
    unfinished = not one.done or (summary is not None and not summary.complete)
    failed = one.sentence or ("its run has no summary" if one.done else "its audit has not ended")
    return BucketEnd(run=one.run, summary=summary, code=code, failed=failed, unfinished=unfinished)


async def open_account(call: FunctionCall, start: FunctionStart) -> OpenedEstate:
    """List the buckets of the account, and add those to the start that it does not have yet."""
    settings = call.settings
    opened = await open_estate(
        start.id, None, (OWN_ACCOUNT,), settings, call.stores, call.stop, lambda files: files.around(start.id)
    )
    if opened.estate.own is None:
        await asyncio.to_thread(opened.files.write, report_of(opened.estate, {}, stopped=UNDER_WAY))
    known = {one.bucket for one in start.targets}
    start.targets += [
        StartTarget.of(Target(one.name, versions=settings.versions), owner=one.owner.account.id)
        for one in opened.estate.audited
        if one.name not in known
    ]
    return opened


def settings_of_owner(settings: Settings, owner: str | None) -> Settings:
    """Return the settings for a bucket of the account's listing, as OpenedAccount.settings() does. owner: number of the
    account; None if it is not known.
    """
    account = OpenedAccount(account=replace(OWN_ACCOUNT, id=owner))
    return account.settings(settings)
