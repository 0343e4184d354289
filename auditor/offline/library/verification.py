"""The functions with which Python programs verify a bucket."""

from __future__ import annotations

import asyncio
from typing import Final, Unpack

from auditor.aio.stop import stopped_by
from auditor.config.resources import check_ledger, open_resources
from auditor.config.values import algorithms as read_algorithms
from auditor.offline.library.blocking import run_blocking
from auditor.offline.library.keyword_types import VerifyKeywords
from auditor.offline.library.keywords import (
    Progress,
    documented,
    ignored,
    plain_value,
    renamed,
    settings_from,
    target_from,
)
from auditor.progress import reporting
from auditor.verify.run import Verification
from auditor.verify.summary import VerifySummary

COMPARED: Final = "the digests to compare (all that the ledger has)"


@documented(VerifyKeywords, algorithms=COMPARED)
def verify_bucket(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    config: str | None = None,
    progress: Progress = ignored,
    **settings: Unpack[VerifyKeywords],
) -> VerifySummary:
    """Read a target's objects again, compare their digests with the ledger's, and block until the run ends.

    The arguments are those of verify_bucket_async.
    """
    return run_blocking(
        lambda: verify_bucket_async(
            uri,
            start_after=start_after,
            stop_at=stop_at,
            config=config,
            progress=progress,
            **settings,
        )
    )


@documented(VerifyKeywords, algorithms=COMPARED)
async def verify_bucket_async(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    config: str | None = None,
    stop: asyncio.Event | None = None,
    progress: Progress = ignored,
    **settings: Unpack[VerifyKeywords],
) -> VerifySummary:
    """Read a target's objects again, and compare their digests with the ledger's.

    settings: the flags of `auditor verify` as keywords; `ledger` is required. The other arguments, and the errors, are
    those of audit_bucket_async.
    """
    found = settings_from(settings, VerifyKeywords, config, needed="ledger")
    if not found.record:
        check_ledger(found)
    named = renamed(settings, VerifyKeywords).get("algorithms")
    compared = None if named is None else read_algorithms(plain_value(named), "algorithms")
    target = target_from(uri, found, start_after, stop_at)
    async with open_resources(found, [target], hashing=False) as resources, stopped_by(stop) as asked:
        verification = Verification(target, found, resources, asked, compared=compared)
        async with reporting(verification.snapshot, progress):
            return await verification.run()
