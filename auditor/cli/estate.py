"""`auditor audit --all-buckets` and `--estate FILE`: every bucket of one account, or of several, in one start."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from auditor.cli import signals
from auditor.cli.audits import Audits, check_audit, offer_to_resume
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.output import expect, heard, print_json, print_text, say
from auditor.cli.progress import named_place
from auditor.cli.run_targets import Teller
from auditor.config.estate import read_estate
from auditor.config.resources import Resources, open_stores
from auditor.config.settings import Settings
from auditor.errors import AuditorError, UsageError
from auditor.estate.files import EstateFiles
from auditor.estate.index import index_entries, write_index
from auditor.estate.report import HOLE, UNDER_WAY, BucketEnd, report_of
from auditor.estate.select_buckets import ChosenBucket
from auditor.estate.start import open_estate
from auditor.model.alert import Alert
from auditor.model.estate import OWN_ACCOUNT, EarlierEstate, EstateReport
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.estate_text import estate_alert, estate_text
from auditor.runs.paths import new_run_id, parse_run_id
from auditor.runs.reading import RunReader
from auditor.text import counted


@command()
def run(frame: CommandFrame) -> int:
    """Audit every bucket of the estate, and return the exit code: 4 for any hole."""
    check_audit(frame)
    _check(frame.options, frame.settings)
    start = EstateStart(frame)
    return signals.run(start.teller.around(start.run()))


def _check(options: argparse.Namespace, settings: Settings) -> None:
    """Raise UsageError for flags that do not go with an estate."""
    flag = "--all-buckets" if options.estate is None else "--estate"
    file, whole = options.estate is not None, "an estate has every bucket of its accounts"
    refused = (
        ("--all-buckets", options.all_buckets and file, "name the accounts in the file"),
        ("s3://..", bool(options.targets), whole),
        ("--fill", options.fill is not None, whole),
        ("--start-after", options.start_after is not None, whole),
        ("--stop-at", options.stop_at is not None, whole),
        ("--jobs", options.jobs is not None, "eight buckets are audited side by side; leave out --jobs"),
        ("--expected-owner", file and settings.expected_owner is not None, "the file names the accounts"),
        ("--queue", file and settings.queue is not None, "the worker has no role in these accounts; use --hash"),
        ("--inventory", file and settings.inventory is not None, "the buckets' own configurations name their reports"),
    )
    for other, given, why in refused:
        if given:
            raise UsageError(f"{flag} and {other} cannot be combined: {why}")
    if options.resume is not None:
        parse_run_id(options.resume)


class EstateAudits(Audits):
    """The audits of the buckets of an estate: each with the credentials of its account, by a run of the start. The
    alerts are kept for the one of the estate.

    estate: ID of the start. buckets: those to audit. index: path in the store of the estate's index page.
    """

    def __init__(
        self, frame: CommandFrame, estate: str, buckets: Sequence[ChosenBucket], teller: Teller, index: str
    ) -> None:
        targets = [Target(one.name, versions=frame.settings.versions) for one in buckets]
        super().__init__(frame, targets, teller, index)
        self._estate = estate
        self._buckets = {one.name: one for one in buckets}
        self._runs: dict[str, str] = {}
        self.alerts: list[Alert] = []

    def settings_of(self, target: Target) -> Settings:
        return self._buckets[target.bucket].owner.settings(self._settings)

    async def run_of(self, target: Target, resources: Resources) -> tuple[str | None, bool]:
        account = self._buckets[target.bucket].owner.account.id
        text = f"{self._estate}\0{account}\0{target.bucket}\0{target.versions}"
        run = new_run_id(parse_run_id(self._estate), hashlib.sha256(text.encode()).digest())
        if self._options.resume is None:
            return run, False
        return run, await asyncio.to_thread(lambda: RunReader(resources.store, target.bucket, run).exists)

    def begun(self, target: Target, run_id: str) -> None:
        super().begun(target, run_id)
        self._runs[target.bucket] = run_id

    def remark_on(self, summary: Summary, target: Target) -> None:
        """Say nothing: the report has each bucket, and one command resumes all."""

    def alert_now(self, alert: Alert | None) -> None:
        """Keep the alert for the one of the estate."""
        if alert is not None:
            self.alerts.append(alert)

    def failed_code(self, sentence: str, code: int) -> int:
        """Return the exit code of a hole, whatever the reason. The one alert names each hole."""
        return HOLE

    def ends(self) -> dict[str, BucketEnd]:
        """Return the end of each bucket that has ended, by its name."""
        found = {}
        for target, result in self.results.items():
            failed = self.entries[target].failed or ""
            run = result.summary.run if result.summary is not None else self._runs.get(target.bucket)
            found[target.bucket] = BucketEnd(run=run, summary=result.summary, code=result.code, failed=failed)
        return found


class EstateStart:
    """One start of an estate: list the buckets of all accounts, audit each, and report every one of them."""

    def __init__(self, frame: CommandFrame) -> None:
        self._frame = frame
        file = None if frame.options.estate is None else read_estate(frame.options.estate)
        self._name = None if file is None else file.name
        self._accounts = (OWN_ACCOUNT,) if file is None else file.accounts
        self._started = time.monotonic()
        self._id = frame.options.resume or new_run_id(datetime.now(UTC), secrets.token_bytes(3))
        self.teller = Teller(frame.settings, "audit")

    async def run(self) -> int:
        """Do the whole start, and return its exit code."""
        stop = signals.stop_on_signals()
        expect(f"asking {counted(len(self._accounts), 'account')} for the buckets")
        async with open_stores(self._frame.settings, [], hashing=True) as stores:
            await asyncio.to_thread(stores.store.check_writable)
            opened = await open_estate(
                self._id, self._name, self._accounts, self._frame.settings, stores, stop, self._before
            )
            heard()
            estate, files = opened.estate, opened.files
            for one in estate.opened:
                if one.hole is not None:
                    say(one.hole)
            audits = EstateAudits(self._frame, self._id, estate.audited, self.teller, opened.index)
            begun = report_of(estate, {}, stopped=UNDER_WAY)  # if this process is killed, every bucket is a hole
            await asyncio.to_thread(files.write, begun)
            if audits.targets and not stop:
                await audits.all(stop)
            seconds = time.monotonic() - self._started
            report = report_of(estate, audits.ends(), stopped=stop.reason, seconds=seconds)
            return await self._end(stores, files, report, audits)

    def _before(self, files: EstateFiles) -> tuple[EarlierEstate | None, EarlierEstate | None]:
        """Return the report of this start, None unless it is resumed, and that of the start before. Blocks."""
        resumed, last = self._frame.options.resume, files.last()
        if resumed is None:
            return None, last
        if last is None or last.estate != resumed:
            other = "there is none" if last is None else f"the last start is {last.estate}"
            raise UsageError(f"there is no start {resumed} to resume at {files.uri}: {other}")
        return files.around(resumed)

    async def _end(self, stores: Resources, files: EstateFiles, report: EstateReport, audits: EstateAudits) -> int:
        """Write the report and the index page, print and send the result, and return the exit code."""
        code, page = report.exit_code, ""
        try:
            await asyncio.to_thread(files.write, report)
        except AuditorError as error:
            say(f"the report of the estate is not written: {error}")
            code = code or 1
        try:
            entries = index_entries(report, {target.bucket: entry for target, entry in audits.entries.items()})
            page = await asyncio.to_thread(write_index, stores.store, entries, [report], folder=files.folder)
        except AuditorError as error:
            say(f"the index page is not written: {error}")
        self._print(report, page, audits.table() if audits.targets else "")
        if report.stopped is not None:
            offer_to_resume(report.stopped, self._frame.options, None, self._id)
        await self.teller.tell(estate_alert(report, audits.alerts, page))
        return code

    def _print(self, report: EstateReport, page: str, table: str) -> None:
        """Print the result. table: that of the buckets."""
        if self._frame.options.format == "json":
            print_json(report.to_dict())
        elif self._frame.options.format == "table":
            place = f"reports: {named_place(page)}\n" if page else ""
            print_text(f"{table}{estate_text(report)}{place}")
        else:
            say(report.line)
