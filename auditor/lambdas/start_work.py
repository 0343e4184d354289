"""The work of one invocation on a start: its targets, how each of them ends or is left, and the end of the start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from msgspec.structs import replace

from auditor.config.settings import Settings
from auditor.errors import AuditorError
from auditor.estate.accounts import OpenedAccount
from auditor.estate.index import MOST, NAME, entry_of, index_entries, latest_entry, write_index
from auditor.estate.report import HOLE, UNDER_WAY, BucketEnd, report_of
from auditor.estate.start import OpenedEstate, open_estate
from auditor.lambdas.event import EVERY, configured_targets
from auditor.lambdas.invocation_frame import FunctionCall
from auditor.lambdas.metrics import of_run
from auditor.lambdas.start import FunctionStart, StartTarget, TargetPhase, seconds_since, take_start
from auditor.lambdas.target_run import TargetEnd, TargetRun, written_end
from auditor.logs import bound
from auditor.model.alert import Alert
from auditor.model.estate import OWN_ACCOUNT, EstateReport
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of, event_of
from auditor.reports.estate_text import estate_alert
from auditor.reports.start_text import start_alert
from auditor.reports.summary import exit_code
from auditor.runs.reading import RunReader

log = logging.getLogger(__name__)

AT_ONCE: Final = 4
"""Largest number of buckets of an account on which one invocation works side by side."""
_READERS: Final = 8
"""Threads that read the summaries of ended runs."""


class StartWork:
    """One invocation's work on a start. machine: True for a step of the state machine.

    Call _take() and _open() before the other methods.
    """

    def __init__(self, call: FunctionCall, *, machine: bool) -> None:
        self._call = call
        self._invocation = call.invocation
        self._store = call.store
        self._stop = call.stop
        self._machine = machine
        self._start: FunctionStart
        self._account: OpenedEstate | None = None
        self._report: EstateReport | None = None
        """The report on every bucket of an account, once the start has ended."""
        self._done: list[TargetEnd] = []
        """How this invocation leaves the targets that it has worked on without a failure."""
        self._refused: list[str] = []
        """The reasons why events of runs were not sent."""

    @property
    def _at_once(self) -> int:
        return 1 if self._account is None else AT_ONCE

    async def _take(self) -> FunctionStart:
        """Take the start for this invocation. Raises StartBusyError."""
        given = self._invocation
        fixed = given.scheduled or given.start is not None
        seconds = self._call.context.remaining()
        take = partial(take_start, self._store, given.start_id, seconds, fixed=fixed, machine=self._machine)
        return await asyncio.to_thread(take)

    async def _open(self, start: FunctionStart) -> None:
        """Find the targets of the start: those of the event, or the buckets of the account as they are now."""
        given = self._invocation
        self._start = start
        if given.all_buckets:
            self._account = await self._open_account(start)
        elif not start.targets:
            start.targets += [StartTarget.of(one, run=given.run) for one in given.targets]
            if not all(one.whole for one in given.targets):
                await self._save()  # an event that continues a range of keys does not name its keys
        index = self._account.index if self._account else NAME if self._indexed() else None
        self._call = replace(self._call, stores=replace(self._call.stores, index=index))

    async def _open_account(self, start: FunctionStart) -> OpenedEstate:
        """List the buckets of the account, and add those to the start that it does not have yet."""
        call, settings = self._call, self._call.settings
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

    def _settings_of(self, owner: str | None) -> Settings:
        """Return the settings for a bucket, for one of the account's listing as OpenedAccount.settings() does. owner:
        number of its account; None if that is not known, and for named targets.
        """
        if not self._invocation.all_buckets:
            return self._call.settings
        return OpenedAccount(account=replace(OWN_ACCOUNT, id=owner)).settings(self._call.settings)

    def _run_of(self, place: int) -> TargetRun:
        one = self._start.targets[place]
        return TargetRun(self._call, one, self._start.id, self._start.wanted(place), self._settings_of(one.owner))

    async def _note(self, place: int, done: TargetEnd) -> None:
        """Note how far a target is, and tell the end of its run."""
        start, one = self._start, self._start.targets[place]
        self._done.append(done)
        if done.left:
            begun = self._machine and not done.sentence and not done.again
            phase = TargetPhase.BEGUN if begun else TargetPhase.WAITING
            start.note(place, phase, run=done.run, sentence=done.sentence)
        elif done.summary is not None:
            start.note(place, TargetPhase.ENDED, run=done.run)
            await self._tell_run(one.target, done, done.summary)

    async def _tell_run(self, target: Target, done: TargetEnd, summary: Summary) -> None:
        """Write the metrics of a run, and send its event. Metrics of each bucket of an account would cost more than the
        audit, so the start has its own.
        """
        with bound(run=summary.run):
            if not self._invocation.all_buckets:
                self._call.measure(of_run(summary), target)
            try:
                event = event_of(summary, self._call.settings.fail_on, _notes(done))
                await self._call.context.channels.tell(None, event)
            except AuditorError as error:  # the alert of the start tells it, and the other runs continue
                log.error("the event of the run was not sent: %s", error)
                self._refused.append(str(error))

    async def _save(self, *, free: bool = False, machine: bool | None = None) -> None:
        await asyncio.to_thread(partial(self._start.save, free=free, machine=machine))

    async def _save_end(self, runs: Sequence[Summary]) -> None:
        """Write that the start has ended. runs: the summaries of its runs."""
        report, failed = self._report, bool(self._start.in_phase(TargetPhase.FAILED))
        complete = report.complete if report is not None else not failed and all(one.complete for one in runs)
        await asyncio.to_thread(partial(self._start.save, free=True, ended=True, complete=complete))

    async def _end(self, stopped: str | None = None) -> list[Summary]:
        """Write the report and the index page, and send the one alert. Return the summaries of all runs of the start.

        stopped: why the start ends before all of its targets; None if it does not.
        """
        runs = await asyncio.to_thread(self._all_ended)
        summaries = [one.summary for one in runs if one.summary is not None]
        if self._account is not None:
            await self._end_account(self._account, summaries, stopped)
            return summaries
        failed = [one for one in self._start.targets if one.phase is TargetPhase.FAILED]
        try:
            await asyncio.to_thread(self._write_index, {one.uri: one.sentence for one in failed})
        except AuditorError as error:
            log.warning("the index page is not written: %s", error)
        alerts = self._alerts(runs)
        lost = [*(one.sentence for one in failed), *dict.fromkeys(self._refused)]
        await self._call.context.channels.tell(start_alert(len(self._start.targets), alerts, lost))
        return summaries

    async def _end_account(self, account: OpenedEstate, runs: Sequence[Summary], stopped: str | None) -> None:
        summaries = {one.target.bucket: one for one in runs}
        ends = {
            one.bucket: self._bucket_end(one, summaries.get(one.bucket))
            for one in self._start.targets
            if one.done or one.run is not None
        }
        report = report_of(account.estate, ends, stopped=stopped, seconds=seconds_since(self._start.id))
        self._report = report
        await asyncio.to_thread(account.files.write, report)
        page = await asyncio.to_thread(self._write_page, report, summaries)
        log.info("%s", report.line)
        lost = report.counts.holes + sum(one.hole is not None for one in report.accounts) + len(self._refused)
        self._call.measure({**of_run(report), **({"RunsFailed": lost} if lost else {})})
        alerts = self._alerts([TargetEnd(summary=one) for one in runs])
        await self._call.context.channels.tell(estate_alert(report, alerts, page))

    def _bucket_end(self, one: StartTarget, summary: Summary | None) -> BucketEnd:
        code = HOLE if summary is None else exit_code(summary, self._call.settings.fail_on)
        unfinished = not one.done or (summary is not None and not summary.complete)
        failed = one.sentence or ("its run has no summary" if one.done else "its audit has not ended")
        return BucketEnd(run=one.run, summary=summary, code=code, failed=failed, unfinished=unfinished)

    def _alerts(self, runs: Sequence[TargetEnd]) -> list[Alert]:
        """Return the alerts on those of the runs that give a reason for one."""
        fail_on = self._call.settings.fail_on
        found = (alert_of(one.summary, one.rollups, fail_on, _notes(one)) for one in runs if one.summary is not None)
        return [one for one in found if one is not None]

    def _all_ended(self) -> list[TargetEnd]:
        """Return the ends of all runs of the start that have a summary, in the order of its targets: of those that
        another invocation has ended, from their folders. Blocks.
        """
        known = {(one.summary.target.bucket, one.run): one for one in self._done if one.summary is not None}

        def read(one: StartTarget) -> TargetEnd:
            run = RunReader(self._store, one.bucket, one.run or "")
            return known.get((one.bucket, one.run)) or written_end(run, rollups=self._account is None)

        wanted = [self._start.targets[place] for place in self._start.in_phase(TargetPhase.ENDED)]
        with ThreadPoolExecutor(_READERS) as threads:
            return [one for one in threads.map(read, wanted) if one.summary is not None]

    def _indexed(self) -> tuple[Target, ...]:
        """Return the targets of the index page; () if the start writes none: for every bucket of an account the start
        has a page of its own, and a target that is not configured is on no page.
        """
        if self._call.settings.buckets == EVERY:
            return ()
        targets = configured_targets(self._call.settings)
        names = {target.uri for target in targets}
        return () if len(targets) > MOST or names.isdisjoint(one.uri for one in self._start.targets) else targets

    def _write_index(self, failed: Mapping[str, str]) -> None:
        """Write the index page, from the last complete run of each configured target. Blocks. failed: by target, why it
        failed.
        """
        if targets := self._indexed():
            entries = [replace(latest_entry(self._store, one), failed=failed.get(one.uri)) for one in targets]
            write_index(self._store, entries)

    def _write_page(self, report: EstateReport, summaries: Mapping[str, Summary]) -> str:
        runs = {name: entry_of(summary.target, summary) for name, summary in summaries.items()}
        return write_index(self._store, index_entries(report, runs), [report], folder=report.folder)


def _notes(run: TargetEnd) -> list[str]:
    return [run.unsent] if run.unsent else []
