"""`auditor audit`."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from typing import Any

from auditor.cli.context import print_json, settings_of, stop_on_signals, targets_of, worst
from auditor.errors import RunError, UsageError
from auditor.gather import Stop
from auditor.pipeline import Audit
from auditor.places import open_places
from auditor.plan import select
from auditor.progress import make_progress
from auditor.reports import table
from auditor.reports.summary import exit_code
from auditor.rules import RULES
from auditor.settings import Settings
from auditor.target import Target


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    targets = targets_of(options, settings)
    select(RULES, settings.rules, settings.only, settings.ignore, settings.level)
    if options.resume and len(targets) > 1:
        raise UsageError("--resume goes on with one run: give its one target")
    return asyncio.run(_audit_all(targets, settings, options))


async def _audit_all(targets: list[Target], settings: Settings, options: argparse.Namespace) -> int:
    stop = Stop()
    stop_on_signals(stop)
    codes = []
    async with open_places(settings, targets) as places:
        progress = make_progress()
        for target in targets:
            if stop:
                sys.stderr.write(f"auditor: {target.uri} was not audited: {stop.reason}\n")
                codes.append(4)
                continue
            audit = Audit(target, settings, places, stop, watch=progress.update, run_id=options.resume)
            try:
                codes.append(await _audit_one(audit, target, settings, options.format))
            finally:
                progress.close()
    return worst(codes)


async def _audit_one(audit: Audit, target: Target, settings: Settings, output: str) -> int:
    """Audit and print one target. A run that fails does not keep the other targets from theirs."""
    try:
        summary = await audit.run()
    except RunError as error:
        sys.stderr.write(f"auditor: {error}\n")
        return error.exit_code
    except asyncio.CancelledError:
        sys.stderr.write(f"auditor: {target.uri}: given up; what was written is in place\n")
        return 4
    _print(summary, settings, output)
    return exit_code(summary, settings.fail_on)


def _print(summary: dict[str, Any], settings: Settings, output: str) -> None:
    if output == "json":
        print_json(summary)
    else:
        sys.stdout.write(table.render(summary, settings.fail_on))
        sys.stdout.flush()
    if (resume := summary["resume"]) is not None:
        target = summary["target"]
        uri = shlex.quote(f"s3://{target['bucket']}/{target['prefix']}")
        sys.stderr.write(
            f"auditor: not complete: {resume['reason']}; go on with: auditor audit {uri} --resume {resume['run']}"
            " and the same flags\n"
        )
