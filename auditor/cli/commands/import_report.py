"""The command `auditor digests import-report`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import cache

from msgspec.structs import replace

from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import first_word, print_result, say
from auditor.cli.progress import counting, shown
from auditor.config.resources import caller_of, connection_to, ledger_of
from auditor.config.settings import Settings
from auditor.hashing.batch.import_report import BATCH, ImportCounts, Importer
from auditor.hashing.batch.report import open_report
from auditor.s3.calls import Caller
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.engines.base import Engine
from auditor.s3.engines.pool import EnginePool
from auditor.s3.open import open_in_its_region
from auditor.s3.rate import RateLimit
from auditor.text import counted, visible


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options, "ledger")
    given: list[str] = options.reports
    first_word(f"reading {counted(len(given), 'report')} into the ledger")
    counts = signals.run(_import(settings, given))
    print_result(options.format, counts, lambda: _text(counts))
    return counts.exit_code


async def _import(settings: Settings, reports: Sequence[str]) -> ImportCounts:
    rate, unlimited = RateLimit(settings.max_rate), replace(settings, max_calls=None)

    def open_engine(bucket: str) -> AbstractAsyncContextManager[Engine]:
        return open_in_its_region(settings.engine, connection_to(bucket, settings, BATCH))

    @cache  # a caller adapts its concurrency to the bucket
    def caller(bucket: str) -> Caller:
        return caller_of(bucket, unlimited, rate, ConcurrencyLimit(BATCH))

    with ExitStack() as stack:
        places = [open_report(report, settings) for report in reports]
        for store, _ in places:
            stack.enter_context(store)
        async with ledger_of(settings) as ledger, EnginePool(open_engine) as engines:
            importer = Importer(ledger, engines, caller)
            async with shown(counting("the reports", lambda: _done(importer.counts))):
                for store, path in places:
                    await importer.take(store, path)
    return importer.counts


def _done(counts: ImportCounts) -> int:
    done = counts.recorded + counts.known + counts.superseded + counts.composite + counts.unusable + counts.failed
    return done + counts.conflicts


def _text(counts: ImportCounts) -> str:
    """Name the digests that are not recorded on stderr, and return the line of the counts."""
    for line in (*counts.failures, *counts.conflicting):
        where = visible(f"{line['bucket']}/{line['key']}")
        say(f"s3://{where}: {visible(str(line['code']))}")
    return (
        f"{counted(counts.recorded, 'digest')} recorded as stated by S3, {counts.known:,} known before,"
        f" {counts.superseded:,} of objects that are gone or others now, {counts.composite:,} composite,"
        f" {counts.unusable:,} not to be used, {counts.conflicts:,} other than recorded, {counts.failed:,} failed\n"
    )
