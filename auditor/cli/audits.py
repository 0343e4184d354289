"""Audit the targets of a command side by side, print their results, and say how to resume what did not end."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.audit.judging_configuration import check_selection, judging, rules_of
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import flag_of
from auditor.cli.output import print_json, print_text, remark, say
from auditor.cli.progress import Show, columns, named_place, options_of
from auditor.cli.run_targets import Teller, each_target
from auditor.config.resources import Resources, open_resources, open_stores
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunComplete, UsageError
from auditor.estate.index import NAME as INDEX
from auditor.estate.index import entries_beside, entry_of, others_in, write_index
from auditor.estate.start import AuditStart, check_jobs
from auditor.model.alert import Alert
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.offline.folder_place import named_run
from auditor.offline.formats import FORMATS
from auditor.offline.formats.markdown import failed_comment
from auditor.offline.run_text import TargetResult, closing_table, render
from auditor.reports.alert import alert_of, event_of
from auditor.reports.phrases import shell_line
from auditor.reports.summary import IndexEntry, exit_code
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store
from auditor.text import visible

_NO_FLAGS: Final = frozenset({"command", "run", "targets", "resume", "verbose"})


@command()
def run(frame: CommandFrame) -> int:
    """Audit the targets, and return the exit code."""
    check_audit(frame)
    if frame.options.resume and len(frame.targets) > 1:
        raise UsageError("--resume continues one run: give its one target")
    teller = Teller(frame.settings, "audit")
    audits = Audits(frame, frame.targets, teller)
    code = signals.run(teller.around(audits.indexed()))
    audits.close()
    return code


def check_audit(frame: CommandFrame) -> None:
    """Raise UsageError for a wrong --jobs, and for settings that select no rules."""
    check_jobs(frame.options.jobs, "--jobs")
    rules_of(frame.settings, ledger=frame.settings.ledger is not None)


class Audits:
    """The audits of a command.

    targets: those to audit. index: path in the store of the index page of an estate, whose targets are several whatever
    their number; None for the index page of the place. The methods that a subclass overrides stand first: an estate's
    buckets differ in them.
    """

    def __init__(
        self, frame: CommandFrame, targets: Sequence[Target], teller: Teller, index: str | None = None
    ) -> None:
        self._settings = frame.settings
        self._options = frame.options
        self._teller = teller
        self.targets = targets
        self._start = AuditStart(frame.settings, targets, frame.options.jobs, several=index is not None)
        self._place = index or INDEX
        self._index: str | None = None
        self.results: dict[Target, TargetResult] = {}
        """The results of the targets that have ended."""
        self.entries: dict[Target, IndexEntry] = {}
        """Their entries for the index page."""

    def settings_of(self, target: Target) -> Settings:
        """Return the settings of a target's run."""
        return self._settings

    async def run_of(self, target: Target, resources: Resources) -> tuple[str | None, bool]:
        """Return the ID of a target's run, None for a new one, and True if that run is to be resumed."""
        given = self._options.resume
        return given and named_run(given, resources.store, target.bucket), given is not None

    def begun(self, target: Target, run_id: str) -> None:
        """Tell the user that a target's run has begun."""
        announce(target, run_id)

    def remark_on(self, summary: Summary, target: Target) -> None:
        """Tell the user what is to be said about the end of a target's run."""
        remark_on(summary, target, self._options)

    def alert_now(self, alert: Alert | None) -> Alert | None:
        """Return the alert to send at the end of a run; None to send none."""
        return alert

    def failed_code(self, sentence: str, code: int) -> int:
        """Note the failure of a target for the alert at the end, and return the target's exit code."""
        self._teller.failed(sentence)
        return code

    async def all(self, stop: Stop | None = None) -> int:
        """Audit all targets, and return the exit code. stop: as for each_target()."""
        return await each_target(
            self.targets,
            open_resources(self._settings, self.targets),
            self.one,
            verb="audited",
            kept="what was written is kept",
            at_once=self._start.at_once,
            failed=self.failed,
            stop=stop,
        )

    async def one(self, target: Target, resources: Resources, stop: Stop, show: Show) -> int:
        """Audit one target, print the result, and return the exit code."""
        async with self._start.resources_of(target, replace(resources, index=self._place)) as own:
            return await self._audit(target, own, stop, show)

    async def _audit(self, target: Target, resources: Resources, stop: Stop, show: Show) -> int:
        options, settings, start = self._options, self.settings_of(target), self._start
        run_id, resume = await self.run_of(target, resources)
        began = partial(self.begun, target)
        audit = start.audit_of(target, settings, resources, stop, run_id=run_id, resume=resume, began=began)
        again = False
        try:
            async with show(audit.snapshot):
                summary = await start.run(audit)
        except RunComplete:
            _, selection = judging(settings, resources)
            summary, rollups = await asyncio.to_thread(_read_back, target, resources, audit.run_id, selection)
            remark(f"{visible(target.uri)}: run {audit.run_id} is complete; this is its summary")
            again = True  # its end is told already
        else:
            rollups = audit.rollups
        code = exit_code(summary, settings.fail_on)
        self.results[target] = TargetResult(target, summary, code)
        self.entries[target] = entry_of(target, summary, rollups)
        if options.format != "table":
            written = RunReader(resources.store, target.bucket, summary.run)
            print_text(await asyncio.to_thread("".join, FORMATS[options.format](summary, written)))
        elif not self._start.several:
            print_text(render(summary, rollups, options_of(settings, summary.out, options.verbose)))
        self.remark_on(summary, target)
        if not again:
            await self._tell(audit, summary)
        return code

    async def _tell(self, audit: Audit, summary: Summary) -> None:
        """Send the alert and the event about a run."""
        fail_on, notes = self._settings.fail_on, [audit.unsent] if audit.unsent else []
        alert = self.alert_now(alert_of(summary, audit.rollups, fail_on, notes))
        await self._teller.tell(alert, event_of(summary, fail_on, notes))

    def failed(self, target: Target, sentence: str, code: int) -> None:
        """Note that a target has no summary, and print that in the format of the summaries."""
        code = self.failed_code(sentence, code)
        self.entries[target] = IndexEntry(target=target, failed=sentence)
        self.results[target] = TargetResult(target, None, code)
        if self._options.format == "json":
            print_json({"target": target, "complete": False, "failed": sentence, "exit_code": code})
        elif self._options.format == "markdown":
            print_text(failed_comment(target, sentence))

    async def indexed(self) -> int:
        """Audit all targets, write the index page of the place, and return the exit code."""
        code = await self.all()
        entries = [self.entries[target] for target in self.targets if target in self.entries]
        if not any(one.summary is not None for one in entries) and not self._start.several:
            return code
        try:
            async with open_stores(self._settings, self.targets, hashing=False) as stores:
                self._index = await asyncio.to_thread(_write_index, stores.store, entries)
        except AuditorError as error:  # the audits have ended, and their results are in place
            say(f"the index page is not written: {error}")
        return code

    def close(self) -> None:
        """Print the closing table of several targets."""
        if self._start.several and self._options.format == "table":
            reports = "" if self._index is None else f"reports: {named_place(self._index)}\n"
            print_text(f"{self.table()}{reports}")

    def table(self) -> str:
        """Return the closing table of the targets that have ended."""
        results = [self.results[target] for target in self.targets if target in self.results]
        return closing_table(results, columns())


def _write_index(store: Store, own: Sequence[IndexEntry]) -> str:
    entries, estates = entries_beside(store, [*own, *others_in(store, own)])
    return write_index(store, entries, estates)


def _read_back(
    target: Target, resources: Resources, run_id: str, selection: Mapping[str, Any]
) -> tuple[Summary, RollUps]:
    """Read the summary and the roll-ups of a complete run from its run folder.

    Raises UsageError if the run's target is another one than `target`, and RunChanged if it was begun with another
    selection: what the run did not look at would be called clean.
    """
    run = RunReader(resources.store, target.bucket, run_id)
    assert run.summary is not None
    done = run.summary.target
    if (done.prefix, done.versions) != (target.prefix, target.versions):
        raise UsageError(f"run {run_id} has another target or prefix, and is complete: start a new run")
    check_selection(run.begun_with, selection)
    return run.summary, run.rollups()


def announce(target: Target, run_id: str) -> None:
    """Print the run's ID at the beginning, because the user needs it to resume a run that was killed."""
    remark(f"{visible(target.uri)}: run {run_id}")


def remark_on(summary: Summary, target: Target, options: argparse.Namespace) -> None:
    """Tell the user how to resume a run that did not end, or what to check if nothing is listed."""
    if (resume := summary.resume) is not None:
        offer_to_resume(resume.reason or "it was stopped", options, target, resume.run)
    elif not summary.coverage.listed and not summary.coverage.delete_markers:
        check = "check the prefix" if target.prefix else "the bucket is empty"
        hint = check if target.whole else "check the prefix and the key range"
        if summary.nothing_listed:
            hint = f"{hint}, or pass --allow-empty"
        if "*" in target.prefix:
            begin = f"s3://{target.bucket}/{visible(target.prefix.partition('*')[0])}"
            hint = f"`*` is an ordinary character of a key here, not a wildcard: write the whole prefix, {begin}"
        say(f"nothing is listed under {visible(target.uri)}: {hint}")


def resume_command(options: argparse.Namespace, target: Target | None, run_id: str) -> str:
    """Return the shell command that resumes the run of this target, with the user's other flags. target: None for the
    start of an estate.
    """
    words = ["audit", *([] if target is None or vars(options).get("fill") else [target.uri])]
    for name, value in vars(options).items():
        if name in _NO_FLAGS or value in (None, False) or (name, value) == ("format", "table"):
            continue
        flag = flag_of(name)
        if value is True:
            words.append(flag)
        else:
            text = str(value)
            words.extend([f"{flag}={text}"] if text.startswith("-") else [flag, text])
    words.extend(["-v"] * options.verbose)
    return f"{program()} {shell_line(*words, '--resume', run_id)}"


def offer_to_resume(reason: str, options: argparse.Namespace, target: Target | None, run_id: str) -> None:
    """Print why a run is not complete, and the command that resumes it, as resume_command() makes it."""
    say(f"not complete: {reason}; resume with: {resume_command(options, target, run_id)}")


def program() -> str:
    """Return the program as the user has to type it: `auditor` if the shell finds that, else the path, quoted."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("auditor", "__main__.py"):
        return f"{shlex.quote(sys.executable)} -m auditor"
    if called.name == "auditor" and shutil.which("auditor") != sys.argv[0]:
        return shlex.quote(sys.argv[0])
    return "auditor"
