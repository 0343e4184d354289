"""`auditor digests import-report`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager

from auditor.aio import loop as loops
from auditor.cli.options import check_needed, settings_of
from auditor.cli.output import print_json, say
from auditor.config.resources import connection_to, ledger_of
from auditor.config.settings import Settings
from auditor.hashing.batch.import_report import BATCH, ImportCounts, Importer, as_json
from auditor.hashing.batch.report_files import BucketPlace, LocalPlace, Place, bucket_of
from auditor.s3.calls import Caller, RetryPolicy
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.engines.base import Engine
from auditor.s3.open import open_in_its_region
from auditor.s3.rate import RateLimit
from auditor.text import counted, visible


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    check_needed(settings, "ledger")
    given: list[str] = options.reports
    buckets = [bucket_of(report) for report in given]
    told = loops.run(_import(settings, list(zip(given, buckets, strict=True))))
    if options.format == "json":
        print_json(as_json(told))
    else:
        _print(told)
    return told.exit_code


async def _import(settings: Settings, reports: Sequence[tuple[str, str | None]]) -> ImportCounts:
    rate = RateLimit(settings.max_rate)

    @asynccontextmanager
    async def open_bucket(bucket: str) -> AsyncIterator[tuple[Engine, Caller]]:
        retry = RetryPolicy(settings.retry_attempts, settings.retry_seconds)
        async with open_in_its_region(settings.engine, connection_to(bucket, settings, BATCH)) as engine:
            yield engine, Caller(bucket, rate=rate, permits=ConcurrencyLimit(BATCH), retry=retry)

    async with ledger_of(settings) as ledger:
        importer = Importer(ledger, open_bucket)
        try:
            with ExitStack() as stack:
                for report, bucket in reports:
                    await importer.take(_place(settings, bucket, stack), report)
        finally:
            await importer.close()
    return importer.told


def _place(settings: Settings, bucket: str | None, stack: ExitStack) -> Place:
    if bucket is None:
        return LocalPlace()
    from auditor.runs.stores.s3 import connect

    client = connect(endpoint_url=settings.endpoint_url, profile=settings.profile, region=settings.region)
    stack.callback(client.close)
    return BucketPlace(client, bucket)


def _print(told: ImportCounts) -> None:
    for line in (*told.failures, *told.conflicting):
        where = visible(f"{line['bucket']}/{line['key']}")
        say(f"s3://{where}: {visible(str(line['code']))}")
    sys.stdout.write(
        f"{counted(told.recorded, 'digest')} recorded as S3's word, {told.known:,} known before,"
        f" {told.superseded:,} of objects that are gone or others now, {told.composite:,} composite,"
        f" {told.unusable:,} not to be used, {told.conflicts:,} other than recorded, {told.failed:,} failed\n"
    )
