"""`auditor hash`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from auditor.aio import loop as loops
from auditor.aio.stop import Stop
from auditor.cli.options import check_needed, print_json, settings_of, stop_on_signals, targets_of, worst
from auditor.cli.progress import make_progress
from auditor.config.resources import ledger_endpoint
from auditor.config.settings import Settings
from auditor.errors import RunError
from auditor.hashing.run import HashRun
from auditor.ledger import open_ledger
from auditor.model.target import Target
from auditor.reports.summary import aside
from auditor.text import counted, harmless, visible


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    check_needed(settings, "ledger")
    return loops.run(_hash_all(targets_of(options, settings), settings, options.format))


async def _hash_all(targets: list[Target], settings: Settings, output: str) -> int:
    stop = Stop()
    stop_on_signals(stop)
    progress = make_progress()
    opening = open_ledger(
        settings.ledger or "",
        region=settings.region,
        endpoint_url=ledger_endpoint(settings),
        profile=settings.profile,
    )
    try:
        async with opening as ledger:
            codes = []
            for target in targets:
                hashing = HashRun(target, settings, ledger, stop, progress.update)
                codes.append(await _hash_one(target, hashing, stop, output))
            return worst(codes)
    finally:
        progress.close()


async def _hash_one(target: Target, hashing: HashRun, stop: Stop, output: str) -> int:
    """Hash and print one target. One that fails does not keep the others from theirs."""
    if stop:
        sys.stderr.write(f"auditor: {visible(target.uri)} was not hashed: {stop.reason}\n")
        return 4
    try:
        counts = await hashing.run()
    except RunError as error:
        sys.stderr.write(f"auditor: {harmless(str(error))}\n")
        return error.exit_code
    except asyncio.CancelledError:
        sys.stderr.write(f"auditor: {visible(target.uri)}: given up; the ledger has what was hashed\n")
        return 4
    _print(counts, output)
    return 4 if counts["failed"] or not counts["complete"] else 0


def _print(counts: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(counts)
        return
    hashing = counts["hashing"]
    uri = f"s3://{counts['target']['bucket']}/{counts['target']['prefix']}"
    sys.stdout.write(
        f"{visible(uri)}: {counted(hashing['hashed_now'], 'object')} hashed now,"
        f" {hashing['known']:,} known before, {hashing['unhashable']:,} cannot be hashed,"
        f" {counts['failed']:,} failed, complete: {'yes' if counts['complete'] else 'NO'}\n"
    )
    for words in aside(hashing):
        sys.stdout.write(f"{visible(uri)}: {words}\n")
