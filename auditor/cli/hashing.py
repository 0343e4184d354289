"""`auditor hash`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from auditor.cli.context import print_json, settings_of, stop_on_signals, targets_of
from auditor.errors import RunError
from auditor.gather import Stop
from auditor.hashrun import HashRun
from auditor.ledgers import open_ledger
from auditor.places import ledger_endpoint
from auditor.progress import make_progress
from auditor.settings import Settings
from auditor.target import Target
from auditor.text import visible


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    return asyncio.run(_hash_all(targets_of(options, settings), settings, options.format))


async def _hash_all(targets: list[Target], settings: Settings, output: str) -> int:
    stop = Stop()
    stop_on_signals(stop)
    progress = make_progress()
    worst = 0
    try:
        async with open_ledger(
            settings.ledger or "",
            region=settings.region,
            endpoint_url=ledger_endpoint(settings),
            profile=settings.profile,
        ) as ledger:
            for target in targets:
                try:
                    counts = await HashRun(target, settings, ledger, stop, progress.update).run()
                except RunError as error:
                    sys.stderr.write(f"auditor: {error}\n")
                    worst = 1
                    continue
                _print(counts, output)
                if worst != 1 and (counts["failed"] or not counts["complete"]):
                    worst = 4
    finally:
        progress.close()
    return worst


def _print(counts: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(counts)
        return
    hashing = counts["hashing"]
    uri = f"s3://{counts['target']['bucket']}/{counts['target']['prefix']}"
    sys.stdout.write(
        f"{visible(uri)}: {hashing['hashed_now']:,} hashed now,"
        f" {hashing['known']:,} known before, {hashing['unhashable']:,} cannot be hashed,"
        f" {counts['failed']:,} failed, complete: {'yes' if counts['complete'] else 'NO'}\n"
    )
