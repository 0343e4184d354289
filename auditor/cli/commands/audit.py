"""`auditor audit`."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from auditor.aio import loop as loops
from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.cli.options import print_json, settings_of, stop_on_signals, targets_of, worst
from auditor.cli.progress import make_progress
from auditor.cli.resume_hint import resume_command
from auditor.config.resources import open_resources
from auditor.config.settings import Settings
from auditor.errors import RunError, UsageError
from auditor.model.target import Target
from auditor.reports import table
from auditor.reports.highlights import Highlights
from auditor.reports.summary import exit_code
from auditor.rules import RULES
from auditor.rules.selection import select
from auditor.text import harmless, visible


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    targets = targets_of(options, settings)
    select(RULES, settings.rules, settings.only, settings.ignore, settings.level, ledger=settings.ledger is not None)
    if options.resume and len(targets) > 1:
        raise UsageError("--resume goes on with one run: give its one target")
    return loops.run(_audit_all(targets, settings, options))


async def _audit_all(targets: list[Target], settings: Settings, options: argparse.Namespace) -> int:
    stop = Stop()
    stop_on_signals(stop)
    codes = []
    async with open_resources(settings, targets) as places:
        progress = make_progress()
        for target in targets:
            if stop:
                _say(f"{visible(target.uri)} was not audited: {stop.reason}")
                codes.append(4)
                continue
            audit = Audit(
                target,
                settings,
                places,
                stop,
                watch=progress.update,
                began=partial(_announce, target),
                run_id=options.resume,
            )
            try:
                codes.append(await _audit_one(audit, target, settings, options))
            finally:
                progress.close()
    return worst(codes)


async def _audit_one(audit: Audit, target: Target, settings: Settings, options: argparse.Namespace) -> int:
    """Audit and print one target. A run that fails does not keep the other targets from theirs."""
    try:
        summary = await audit.run()
    except RunError as error:
        _say(harmless(str(error)))
        return error.exit_code
    except asyncio.CancelledError:
        _say(f"{visible(target.uri)}: given up; what was written is in place")
        return 4
    if options.format == "json":
        print_json(summary)
    else:
        _print_table(summary, settings, audit.shown)
    _remark(summary, target, options)
    return exit_code(summary, settings.fail_on)


def _print_table(summary: Mapping[str, Any], settings: Settings, shown: Highlights) -> None:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else table.COLUMNS
    sys.stdout.write(table.render(summary, settings.fail_on, shown, columns))
    sys.stdout.flush()


def _remark(summary: Mapping[str, Any], target: Target, options: argparse.Namespace) -> None:
    """What the user should do about a run that did not end, or that found nothing to look at."""
    if (resume := summary["resume"]) is not None:
        _say(f"not complete: {resume['reason']}; go on with:\n{resume_command(options, target, resume['run'])}")
    elif not summary["coverage"]["listed"] and not summary["coverage"]["delete_markers"]:
        check = "check the prefix" if target.prefix else "the bucket is empty"
        hint = check if target.whole else "check the prefix and the key range"
        _say(f"nothing is listed under {visible(target.uri)}: {hint}")


def _announce(target: Target, run_id: str) -> None:
    """So that the ID is known of a run that is killed."""
    _say(f"{visible(target.uri)}: run {run_id}")


def _say(sentence: str) -> None:
    sys.stderr.write(f"auditor: {sentence}\n")
