"""The command `auditor audit`."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from functools import partial

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.cli import signals
from auditor.cli.each_target import each_target
from auditor.cli.options import settings_of, targets_of
from auditor.cli.output import print_json, say
from auditor.cli.progress import Show
from auditor.cli.resume_hint import resume_command
from auditor.config.resources import Resources, open_resources
from auditor.config.settings import Settings
from auditor.errors import RunComplete, UsageError
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports import table
from auditor.reports.highlights import Highlights
from auditor.reports.summary import exit_code
from auditor.rules import RULES
from auditor.rules.selection import select
from auditor.runs.reading import RunReader
from auditor.text import visible


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    targets = targets_of(options, settings)
    select(RULES, settings.rules, settings.only, settings.ignore, settings.level, ledger=settings.ledger is not None)
    if options.resume and len(targets) > 1:
        raise UsageError("--resume goes on with one run: give its one target")
    one = partial(_audit_one, settings, options)
    opening = open_resources(settings, targets)
    return signals.run(each_target(targets, opening, one, verb="audited", kept="what was written is in place"))


async def _audit_one(
    settings: Settings, options: argparse.Namespace, target: Target, resources: Resources, stop: Stop, show: Show
) -> int:
    """Audit one target, print the result, and return the exit code."""
    audit = Audit(target, settings, resources, stop, began=partial(_announce, target), run_id=options.resume)
    try:
        async with show(audit.snapshot):
            summary = await audit.run()
    except RunComplete:
        summary, shown = await asyncio.to_thread(_read_back, target, resources, options.resume)
        say(f"{visible(target.uri)}: run {options.resume} is complete, this is its summary")
    else:
        shown = audit.shown
    if options.format == "json":
        print_json(summary.to_dict())
    else:
        _print_table(summary, settings, shown)
    _remark(summary, target, options)
    return exit_code(summary, settings.fail_on)


def _read_back(target: Target, resources: Resources, run_id: str) -> tuple[Summary, Highlights]:
    """Read the summary and the highlights of a complete run from its run folder. Raises UsageError if the run's target
    is another one than `target`.
    """
    run = RunReader(resources.store, target.bucket, run_id)
    assert run.summary is not None
    done = run.summary.target
    if (done.prefix, done.versions) != (target.prefix, target.versions):
        raise UsageError(f"run {run_id} is of another target or prefix: it is complete, start a new run")
    return run.summary, Highlights.read(run, run.summary.verdicts["exposed"])


def _print_table(summary: Summary, settings: Settings, shown: Highlights) -> None:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else table.COLUMNS
    sys.stdout.write(table.render(summary, settings.fail_on, shown, columns))
    sys.stdout.flush()


def _remark(summary: Summary, target: Target, options: argparse.Namespace) -> None:
    """Tell the user how to resume a run that did not end, or what to check if nothing is listed."""
    if (resume := summary.resume) is not None:
        say(f"not complete: {resume.reason}; go on with:")
        sys.stderr.write(f"{resume_command(options, target, resume.run)}\n")
    elif not summary.coverage.listed and not summary.coverage.delete_markers:
        check = "check the prefix" if target.prefix else "the bucket is empty"
        hint = check if target.whole else "check the prefix and the key range"
        say(f"nothing is listed under {visible(target.uri)}: {hint}")


def _announce(target: Target, run_id: str) -> None:
    """Print the run's ID at the beginning, because the user needs it to resume a run that was killed."""
    say(f"{visible(target.uri)}: run {run_id}")
