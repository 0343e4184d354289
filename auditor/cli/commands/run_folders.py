"""The commands on finished runs, `auditor diff`, `report`, `export`, `judge` and `check`: they read run folders."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec.structs import asdict, replace

from auditor.aio import loop as loops
from auditor.audit.judging_configuration import judged_by
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command, in_thread
from auditor.cli.flags import RUN, Flags, flag_of
from auditor.cli.output import expect, first_word, heard, print_text, say
from auditor.cli.progress import columns, make_progress, options_of
from auditor.cli.run_targets import HOLE
from auditor.config.layers import Layer
from auditor.config.settings import Settings
from auditor.config.values import account as account_of
from auditor.errors import OutputError, UsageError
from auditor.estate.index import NAME as INDEX
from auditor.estate.index import entries_beside, entries_in, index_text, write_index
from auditor.model.summary import Summary
from auditor.offline.check_run import RunCheck, RunChecker
from auditor.offline.diff import Diff, FirstChanges, change_line, render
from auditor.offline.folder_place import is_run_folder, open_run
from auditor.offline.formats import FORMATS, PRINTED
from auditor.offline.formats.asff import LookedAt
from auditor.offline.formats.base import FormatOptions
from auditor.offline.library.run import Run
from auditor.offline.rejudge import JudgeAgain
from auditor.offline.security_hub import SentFindings, open_security_hub
from auditor.offline.stored_page import page_again
from auditor.progress import Snapshot
from auditor.reports.summary import exit_code
from auditor.runs.reading import RunReader
from auditor.runs.run_files import PLAN
from auditor.runs.stores.local import private
from auditor.runs.stores.outfile import OutFile
from auditor.text import counted, visible

_HUB: Final = "AWS Security Hub, for asff"
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")
_JUDGING: Final = ("only", "ignore", "level", "semantics")


def declare_diff(flags: Flags) -> None:
    """Declare the flags of `auditor diff`.

    auditor diff auditor-runs/bucket=my-bucket/run=20260101T000000Z-123456 s3://my-bucket
    auditor diff OLD NEW --format jsonl
    """
    flags.add("old OLD", f"the earlier run: {RUN}")
    flags.add("new NEW", "the later run")
    flags.run_store()
    words = "table: the first changes of each kind; json: their numbers; jsonl: every change"
    flags.form(("table", "json", "jsonl"), words)


@command()
def run_diff(frame: CommandFrame) -> int:
    """Compare the two runs, and print the changes."""
    places = (frame.options.old, frame.options.new)
    first_word(f"reading the runs {' and '.join(map(visible, places))}")
    old, new = (Run(place, **frame.settings.connection) for place in map(frame.run_place, places))
    work, first = Diff(old, new), FirstChanges()
    heard()
    for run in (old, new):
        if run.summary is None or not run.summary.complete:
            say(f"run {run.run_id} is NOT COMPLETE: the objects that it did not reach, and their findings, are unread")
    if frame.options.format == "jsonl":
        for change in work.changes():
            sys.stdout.write(json.dumps(change_line(change)) + "\n")
        return 0
    for change in work.changes():
        first.add(change)
    document = {"old": old.run_id, "new": new.run_id, "changes": work.counts}
    frame.print(document, lambda: render(old.run_id, new.run_id, work.counts, first, columns()))
    return 0


def declare_report(flags: Flags) -> None:
    """Declare the flags of `auditor report`.

    auditor report auditor-runs/bucket=b/run=20260101T000000Z-123456
    auditor report s3://reports/bucket=b/run=20260101T000000Z-123456 --out page.html
    """
    place = "a run folder, or the folder of all runs for the index page of all targets: a path or URI"
    flags.add("run_folder RUN|OUT", place)
    file = "write the page to this file (report.html; index.html for OUT); -: stdout"
    flags.add("--out FILE", file, dest="file")
    flags.run_store()


@command()
def run_report(frame: CommandFrame) -> int:
    """Make the page of a run, or the index page of a place of runs, again, and write it. Return 4 for a run that is not
    complete, else 0.
    """
    place = frame.options.run_folder
    first_word(f"reading the run {visible(place)}")
    if Path(place).is_file():
        raise UsageError(f"{place[:200]!r} is a file: give a run folder, OUT/bucket=BUCKET/run=ID, or an OUT")
    if not is_run_folder(place):
        return _index(place, frame)
    file = frame.options.file or "report.html"
    with open_run(place, **frame.settings.connection) as opened:
        page = page_again(opened, _index_beside(opened, file))
        complete = opened.complete
    _written(page, file)
    if complete:
        return 0
    say(f"{visible(place)} is a run that has not ended: its page covers what is listed so far")
    return HOLE


def _index_beside(run: RunReader, file: str) -> str | None:
    """Return the address of the index page of the run's place, relative to the run's page in `file`; None if there is
    none, or if the run is in a bucket.
    """
    index = Path(run.store.uri()) / INDEX
    if run.store.bucket is not None or not index.is_file():
        return None
    folder = run.uri if file == "-" else os.path.dirname(os.path.abspath(file))
    return quote(os.path.relpath(index, folder))


def _index(place: str, frame: CommandFrame) -> int:
    with frame.store(place) as store:
        entries, estates = entries_beside(store, entries_in(store))
        if not entries:
            raise UsageError(
                f"there is no complete run at {place[:200]!r}: give a run folder, OUT/bucket=BUCKET/run=ID, or an OUT"
                " that has some"
            )
        if frame.options.file is not None:
            _written(index_text(entries, store.uri(), estates), frame.options.file)
        else:
            sys.stdout.write(f"{visible(write_index(store, entries, estates))}\n")
    return 0


def _written(page: str, file: str) -> None:
    """Write a page to the file that the user names, or to stdout for "-"."""
    if file == "-":
        sys.stdout.write(page)
        return
    try:
        with open(file, "w", encoding="utf-8", opener=private) as written:
            written.write(page)
    except (OSError, ValueError) as error:
        raise OutputError(f"{file!r} cannot be written ({error}): give another --out") from error
    sys.stdout.write(f"{visible(file)}\n")


def declare_export(flags: Flags) -> None:
    """Declare the flags of `auditor export`.

    auditor export s3://my-bucket --format csv --out findings.csv
    auditor export s3://my-bucket --format markdown
    auditor export s3://my-bucket --format ocsf --out findings.json
    """
    flags.run_folder()
    words = "; ".join(f"{name}: {one.words}" for name, one in FORMATS.items())
    flags.add("--format", words, required=True, choices=tuple(FORMATS))
    flags.add("--out FILE", "write to this file, not to stdout", dest="file")
    flags.add("--account NUMBER", "account of the findings (the run's)", _HUB)
    send = "import the findings into Security Hub in the account of the credentials, and archive those of the last run"
    flags.add("--send", f"{send} that are over", _HUB)
    flags.settings("endpoint_url", "profile")
    flags.settings(region="region of the findings (the bucket's), and of the run folder's bucket")
    flags.config()


@command()
def run_export(frame: CommandFrame) -> int:
    """Write the run in the chosen format, or send it. Return 0, or 1 if a finding is refused."""
    options, settings = frame.options, frame.settings
    account = None if options.account is None else account_of(options.account, "--account")
    if options.format != "asff" and (account or options.send):
        raise UsageError(f"--account and --send are for --format asff, not {options.format}: leave them out")
    if settings.region is not None and not _REGION.fullmatch(settings.region):
        raise UsageError(f"--region {settings.region!r} is not a region: write it like eu-west-1")
    with frame.reading(options.run_folder) as opened:
        if opened.summary is None:
            raise UsageError(f"run {opened.run_id} has no summary.json yet: complete it with `auditor audit --resume`")
        heard()
        if options.file is not None or not options.send:
            how = _choices(opened, frame, account)
            _write(FORMATS[options.format](opened.summary, opened, how), options.file)
        if options.send:
            return _send(opened, opened.summary, settings, account)
    return 0


def _choices(run: RunReader, frame: CommandFrame, account: str | None) -> FormatOptions:
    options, settings = frame.options, frame.settings
    how = options_of(settings, run.uri, options.verbose)
    if options.file is not None:
        how = FormatOptions(fail_on=how.fail_on, verbose=how.verbose, folder=how.folder)
    if options.format != "asff":
        return how
    return replace(how, account=account or _fact(run, "account"), region=settings.region or _fact(run, "region"))


def _send(run: RunReader, summary: Summary, settings: Settings, account: str | None) -> int:
    """Send the findings to Security Hub, print how many it took, and return the exit code."""
    rollups = run.rollups()
    looked = LookedAt.by(summary, rollups, run.begun_with)

    async def send() -> SentFindings:
        async with open_security_hub(settings.region, settings.profile, account) as hub:
            return await hub.send(summary, rollups, looked)

    expect("asking Security Hub")
    done = loops.run(send())
    place = f"Security Hub of account {done.hub.account} in {done.hub.region}"
    sys.stdout.write(f"{place}: {counted(done.sent, 'finding')} sent, {done.archived:,} archived, {done.kept:,} kept\n")
    if done.kept:
        say(f"{counted(done.kept, 'earlier finding')} stay active: this run did not look at all of their objects")
    for name, code in done.failed:
        say(f"{place} refuses {visible(name)}: {visible(code)}")
    return 1 if done.failed else 0


def _fact(run: RunReader, name: str) -> str | None:
    """Return a fact of the bucket as the run read it last; None if the run does not know it."""
    value = getattr(run.begun_with.facts, name)
    return value if isinstance(value, str) else None


def _write(pieces: Iterable[str], file: str | None) -> None:
    """Write the pieces to stdout, or to a file that exists only when it is whole."""
    if file is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
        return
    with OutFile(file) as growing:
        for piece in pieces:
            growing.write(piece.encode())
        growing.keep()


def declare_judge(flags: Flags) -> None:
    """Declare the flags of `auditor judge`.

    auditor judge s3://my-bucket --all-rules
    auditor judge s3://my-bucket --config auditor.toml --trust 123456789012
    """
    flags.run_folder()
    flags.add("--config FILE", "judge with this auditor.toml (the run's own configuration)")
    every = "choose from all rules of this version, not only from those of the run"
    flags.add("--all-rules", every)
    flags.settings("level", "only", "ignore", "semantics")
    flags.trust()
    flags.settings("fail_on", out="where the new run folder goes (beside RUN)")
    flags.run_bucket()
    flags.form(PRINTED)


@command()
def run_judge(frame: CommandFrame) -> int:
    """Judge the run again, print the summary of the new run folder, and return the exit code of an audit."""
    return signals.run(_judge(frame))


async def _judge(frame: CommandFrame) -> int:
    options, settings = frame.options, frame.settings
    stop = signals.stop_on_signals()
    with frame.reading(options.run_folder) as source:
        given = Layer({name: vars(options)[name] for name in _JUDGING}, flag_of)
        file = await asyncio.to_thread(lambda: source.begun_with)
        where, trust = f"{source.uri}/{PLAN}", options.trust or ()
        by = judged_by(file, where, given, options.config, anew=options.all_rules, trust=trust)
        with nullcontext(source.store) if options.out is None else frame.store(options.out) as out:
            if options.out is not None:
                out.check_writable()
            work = JudgeAgain(source, out, by, stop.is_set)
            summary = await in_thread(work.snapshot, work.run, ends=True)
            written = RunReader(out, source.bucket_name, summary.run)
            how = options_of(settings, written.uri, options.verbose)
            print_text("".join(FORMATS[options.format](summary, written, how)))
    say(f"run {summary.run}: judged again from {visible(options.run_folder)}")
    return exit_code(summary, settings.fail_on)


def declare_check(flags: Flags) -> None:
    """Declare the flags of `auditor check`.

    auditor check s3://my-bucket
    auditor check s3://reports/bucket=b/run=20260101T000000Z-123456 --format json
    """
    flags.run_folder()
    flags.run_store()
    flags.form()


@command()
def run_check(frame: CommandFrame) -> int:
    """Check the run folder, print the result, and return its exit code: 1 for a fault, 4 if something is not there to
    check, 0 if the run is whole.
    """
    place, started = frame.options.run_folder, time.monotonic()

    def note(objects: int) -> None:
        progress.update(Snapshot(what=visible(place), objects=objects, seconds=time.monotonic() - started))

    with closing(make_progress()) as progress, frame.reading(place) as opened:
        found = RunChecker(opened, note).run()
    frame.print_lines({**asdict(found), "whole": not found.exit_code}, _lines(found))
    return found.exit_code


def _lines(found: RunCheck) -> Iterator[str]:
    seen = f"{counted(found.parts, 'file')} of lines, {counted(found.lines, 'line')}"
    verdict = "ALTERED" if found.faults else "not proved whole" if found.lacks else "whole"
    yield f"run {found.run}: {verdict}; {seen}"
    yield from (f"  fault: {sentence}" for sentence in found.faults)
    yield from (f"  not checked: {sentence}" for sentence in found.lacks)
    if found.chain:
        yield f"  chain: {counted(len(found.chain), 'earlier run')}, back to {found.chain[-1]}"
    if found.sha256 is not None:
        yield f"  SHA-256 of summary.json: {found.sha256}"
