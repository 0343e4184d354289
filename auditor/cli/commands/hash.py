"""The command `auditor hash`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.each_target import each_target
from auditor.cli.options import settings_of, targets_of
from auditor.cli.output import print_result
from auditor.cli.progress import Show
from auditor.config.resources import ledger_of
from auditor.config.settings import Settings
from auditor.hashing.run import HashRun, HashRunSummary
from auditor.ledger.base import Ledger
from auditor.model.target import NOTHING_LISTED, Target
from auditor.reports.summary import aside
from auditor.text import counted, healed_rows, visible


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options, "ledger")
    targets = targets_of(options, settings)
    one = partial(_hash_one, settings, options.format)
    opening = ledger_of(settings)
    return signals.run(each_target(targets, opening, one, verb="hashed", kept="the ledger has what was hashed"))


async def _hash_one(settings: Settings, output: str, target: Target, ledger: Ledger, stop: Stop, show: Show) -> int:
    """Hash the objects of one target, print the counts, and return the exit code."""
    hashing = HashRun(target, settings, ledger, stop)
    async with show(hashing.snapshot):
        counts = await hashing.run()
    uri = visible(f"s3://{counts.target.bucket}/{counts.target.prefix}")
    print_result(output, counts, lambda: "".join(f"{uri}: {line}\n" for line in _lines(counts)))
    return counts.exit_code


def _lines(counts: HashRunSummary) -> Iterator[str]:
    hashing = counts.hashing
    yield (
        f"{counted(hashing.hashed_now, 'object')} hashed now,"
        f" {hashing.known:,} known before, {hashing.unhashable:,} cannot be hashed,"
        f" {counts.failed:,} failed, {counts.replaced:,} replaced, complete: {'yes' if counts.complete else 'NO'}"
    )
    if counts.holes:
        yield f"HOLE: {'; '.join(counts.holes)}"
    if counts.accepted:
        yield f"accepted in the configuration: {counted(counts.accepted, 'object')}"
    if counts.complete and not sum(hashing.counts.values()):
        allow = ", or allow it by --allow-empty" if NOTHING_LISTED in counts.holes else ""
        yield f"nothing is listed: check the bucket and the prefix{allow}"
    yield from (*aside(hashing), *healed_rows(counts.healed))
