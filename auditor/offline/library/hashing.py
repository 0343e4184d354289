"""The functions with which Python programs hash a bucket."""

from __future__ import annotations

import asyncio
from typing import Unpack

from auditor.aio.stop import stopped_by
from auditor.config.resources import ledger_of
from auditor.hashing.run import HashRun, HashRunSummary
from auditor.offline.library.blocking import run_blocking
from auditor.offline.library.keyword_types import HashKeywords
from auditor.offline.library.keywords import Progress, documented, ignored, settings_from, target_from
from auditor.progress import reporting


@documented(HashKeywords)
def hash_bucket(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    config: str | None = None,
    progress: Progress = ignored,
    **settings: Unpack[HashKeywords],
) -> HashRunSummary:
    """Hash the objects of a target that have no digest in the ledger, and block until the run ends.

    The arguments are those of hash_bucket_async.
    """
    return run_blocking(
        lambda: hash_bucket_async(
            uri, start_after=start_after, stop_at=stop_at, config=config, progress=progress, **settings
        )
    )


@documented(HashKeywords)
async def hash_bucket_async(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    config: str | None = None,
    stop: asyncio.Event | None = None,
    progress: Progress = ignored,
    **settings: Unpack[HashKeywords],
) -> HashRunSummary:
    """Hash the objects of a target that have no digest in the ledger, and return the counts.

    settings: the flags of `auditor hash` as keywords; `ledger` is required. The other arguments, and the errors, are
    those of auditor.audit_bucket_async.
    """
    found = settings_from(settings, HashKeywords, config, needed="ledger")
    target = target_from(uri, found, start_after, stop_at)
    async with ledger_of(found) as ledger, stopped_by(stop) as asked:
        hashing = HashRun(target, found, ledger, asked)
        async with reporting(hashing.snapshot, progress):
            return await hashing.run()
