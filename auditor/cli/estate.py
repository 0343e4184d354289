"""`auditor audit --all-buckets` and `--estate FILE`: every bucket of one account, or of several, in one start."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import secrets
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from auditor.aio.stop import Stop
from auditor.audit.estate.accounts import open_accounts
from auditor.audit.estate.balance import HOLE, UNDER_WAY, BucketEnd, Estate, report_of
from auditor.audit.estate.choice import ChosenBucket, choose, places_of
from auditor.audit.estate.files import EstateFiles, folder_of
from auditor.audit.estate.page import index_entries
from auditor.audit.index import write_index
from auditor.cli import signals
from auditor.cli.commands.audit import Audits, at_once
from auditor.cli.each_target import each_target
from auditor.cli.output import expect, heard, print_json, say
from auditor.cli.progress import Show
from auditor.cli.resume_hint import resume_command
from auditor.config.estate import EstateFile, read_estate
from auditor.config.resources import Resources, open_resources, open_stores
from auditor.config.settings import Settings
from auditor.errors import AuditorError, UsageError
from auditor.model.estate import OWN_ACCOUNT, EarlierEstate, EstateReport
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.estate_text import estate_alert, estate_text
from auditor.rules import RULES
from auditor.rules.selection import select
from auditor.runs.paths import new_run_id, parse_run_id
from auditor.runs.reading import RunReader
from auditor.text import counted, visible

if TYPE_CHECKING:
    from auditor.audit.divided.jobs import JobsAudit
    from auditor.audit.run import Audit
    from auditor.model.alert import Alert
    from auditor.reports.summed import IndexEntry


def audit_estate(options: argparse.Namespace, settings: Settings) -> int:
    """Audit every bucket of the estate, and return the exit code: 4 for any hole."""
    _check(options, settings)
    file = None if options.estate is None else read_estate(options.estate)
    select(RULES, settings.rules, settings.only, settings.ignore, settings.level, ledger=settings.ledger is not None)
    start = EstateStart(options, settings, file)
    return signals.run(start.audits.teller.around(start.run()))


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
        ("--jobs", options.jobs is not None, "eight buckets are audited side by side, leave --jobs away"),
        ("--expected-owner", file and settings.expected_owner is not None, "the file names the accounts"),
        ("--queue", file and settings.queue is not None, "the worker has no role of these accounts, use --hash"),
        ("--inventory", file and settings.inventory is not None, "the buckets' own configurations name their reports"),
    )
    for other, given, why in refused:
        if given:
            raise UsageError(f"{flag} and {other} exclude each other: {why}")
    if options.resume is not None:
        parse_run_id(options.resume)


class EstateStart:
    """One start of an estate: list the buckets of all accounts, audit each, and report every one of them."""

    def __init__(self, options: argparse.Namespace, settings: Settings, file: EstateFile | None) -> None:
        """file: None for every bucket of the account of the own credentials."""
        self._options = options
        self._settings = settings
        self._name = None if file is None else file.name
        self._accounts = (OWN_ACCOUNT,) if file is None else file.accounts
        self._started = time.monotonic()
        self._id = options.resume or new_run_id(datetime.now(UTC), secrets.token_bytes(3))
        self.audits = _EstateAudits(settings, options, self._id)

    async def run(self) -> int:
        """Do the whole start, and return its exit code."""
        stop = Stop(grace=signals.GRACE)
        signals.stop_on_signals(stop)
        expect(f"asking {counted(len(self._accounts), 'account')} for the buckets")
        async with open_stores(self._settings, [], hashing=True) as stores:
            await asyncio.to_thread(stores.store.check_writable)
            opened = await open_accounts(self._accounts, self._settings, stop)
            heard()
            for one in opened:
                if one.hole is not None:
                    say(one.hole)
            numbers = [one.account.id for one in opened]
            files = EstateFiles(stores.store, folder_of(self._name, numbers[0]), numbers)
            own, earlier = await asyncio.to_thread(self._before, files)
            day = datetime.now(UTC).date().isoformat()
            estate = Estate(
                estate=self._id,
                out=stores.store.uri(),
                folder=files.folder,
                opened=opened,
                choice=choose(opened, day, places_of(stores)),
                earlier=earlier,
                own=own,
            )
            self.audits.take(estate.audited)
            begun = report_of(estate, {}, stopped=UNDER_WAY)  # if this process is killed, every bucket is a hole
            await asyncio.to_thread(files.write, begun)
            stopped = stop.reason if stop else await self._audit()
            report = report_of(estate, self.audits.ends(), stopped=stopped, seconds=time.monotonic() - self._started)
            return await self._end(stores, files, report)

    def _before(self, files: EstateFiles) -> tuple[EarlierEstate | None, EarlierEstate | None]:
        """Return the report of this start, None unless it is resumed, and that of the start before. Blocks."""
        resumed, last = self._options.resume, files.last()
        if resumed is None:
            return None, last
        if last is None or last.estate != resumed:
            other = "there is none" if last is None else f"the last start is {last.estate}"
            raise UsageError(f"there is no start {resumed} to resume at {files.uri}: {other}")
        return files.around(resumed)

    async def _audit(self) -> str | None:
        """Audit the buckets. Return why that ended before its end; None if it did not."""
        targets = self.audits.targets
        if not targets:
            return None
        await each_target(
            targets,
            open_resources(self._settings, targets),
            self.audits.one,
            verb="audited",
            kept="what was written is in place",
            at_once=at_once(self._settings),
            failed=self.audits.failed,
        )
        return self.audits.stopped

    async def _end(self, stores: Resources, files: EstateFiles, report: EstateReport) -> int:
        """Write the report and the index page, print and send the result, and return the exit code."""
        code = report.exit_code
        try:
            await asyncio.to_thread(files.write, report)
            entries = index_entries(report, self.audits.entries)
            page = await asyncio.to_thread(write_index, stores.store, entries, [report], folder=files.folder)
        except AuditorError as error:
            say(f"the report of the estate is not written: {error}")
            code, page = code or 1, ""
        self._print(report, page)
        if report.stopped is not None:
            say(f"not complete: {report.stopped}; go on with:")
            sys.stderr.write(f"{resume_command(self._options, None, self._id)}\n")
        if self.audits.teller.listens:
            await self.audits.teller.tell(estate_alert(report, self.audits.alerts, page))
        return code

    def _print(self, report: EstateReport, page: str) -> None:
        if self._options.format == "json":
            print_json(report.to_dict())
        elif self._options.format == "table":
            table = self.audits.table() if self.audits.targets else ""
            place = f"reports: {visible(page)}\n" if page else ""
            sys.stdout.write(f"{table}{estate_text(report)}{place}")
            sys.stdout.flush()
        else:
            say(report.line)


class _EstateAudits(Audits):
    """The audits of the buckets of an estate: each with the credentials of its account, and a run ID of the start."""

    def __init__(self, settings: Settings, options: argparse.Namespace, estate: str) -> None:
        super().__init__(settings, options, [], several=True)
        self._estate = estate
        self._buckets: dict[str, ChosenBucket] = {}
        self._begun: dict[str, str] = {}
        self._stop: Stop | None = None
        self.alerts: list[Alert] = []

    def take(self, buckets: Sequence[ChosenBucket]) -> None:
        """Take the buckets to audit."""
        self._buckets = {one.name: one for one in buckets}
        self._targets = [Target(one.name, versions=self._settings.versions) for one in buckets]

    @property
    def targets(self) -> Sequence[Target]:
        return self._targets

    @property
    def stopped(self) -> str | None:
        """Why the work was stopped by a signal; None if it was not."""
        return self._stop.reason if self._stop else None

    @property
    def entries(self) -> dict[str, IndexEntry]:
        """By bucket, the entry of its run for the index page."""
        return {target.bucket: entry for target, entry in self._entries.items()}

    def ends(self) -> dict[str, BucketEnd]:
        """Return the end of each bucket that has ended, by its name."""
        found = {}
        for target, result in self._results.items():
            entry = self._entries.get(target)
            failed = entry.failed if entry is not None and entry.failed else ""
            run = result.summary.run if result.summary is not None else self._begun.get(target.bucket)
            found[target.bucket] = BucketEnd(run=run, summary=result.summary, code=result.code, failed=failed)
        return found

    async def one(self, target: Target, resources: Resources, stop: Stop, show: Show) -> int:
        self._stop = stop
        return await super().one(target, resources, stop, show)

    def settings_of(self, target: Target) -> Settings:
        return self._buckets[target.bucket].owner.settings(self._settings)

    async def run_of(self, target: Target, resources: Resources) -> tuple[str | None, bool]:
        account = self._buckets[target.bucket].owner.account.id
        text = f"{self._estate}\0{account}\0{target.bucket}\0{target.versions}"
        run = new_run_id(parse_run_id(self._estate), hashlib.sha256(text.encode()).digest())
        if self._options.resume is None:
            return run, False
        return run, await asyncio.to_thread(lambda: RunReader(resources.store, target.bucket, run).exists)

    def announce(self, target: Target, run_id: str) -> None:
        super().announce(target, run_id)
        self._begun[target.bucket] = run_id

    def remark_on(self, summary: Summary, target: Target) -> None:
        """Say nothing: the report has each bucket, and one command resumes all."""

    async def tell(self, audit: Audit | JobsAudit, summary: Summary) -> None:
        """Send the event on a run, and keep its alert for the one of the estate."""
        from auditor.reports.alert import alert_of
        from auditor.reports.run_event import event_of

        fail_on, notes = self._settings.fail_on, [audit.unsent] if audit.unsent else []
        alert = alert_of(summary, audit.rollups, fail_on, notes)
        if alert is not None:
            self.alerts.append(alert)
        await self.teller.tell(None, event_of(summary, fail_on, notes))

    def failed(self, target: Target, sentence: str, code: int) -> None:
        """Note that a bucket was not audited: a hole, whatever the reason."""
        super().failed(target, sentence, HOLE)

    def note_failure(self, sentence: str) -> None:
        """Keep nothing: the one alert names each hole."""
