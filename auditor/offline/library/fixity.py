"""The functions with which Python programs hash a bucket, and verify it."""

from __future__ import annotations

import asyncio
from typing import Final, Unpack

from auditor.aio.stop import stopped_by
from auditor.config import values
from auditor.config.resources import check_ledger, ledger_of, open_resources
from auditor.hashing.run import HashRun, HashRunSummary
from auditor.offline.library.blocking import blocking
from auditor.offline.library.keyword_types import HashKeywords, VerifyKeywords
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


hash_bucket = blocking(hash_bucket_async, HashKeywords)


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
    compared = None if named is None else values.algorithms(plain_value(named), "algorithms")
    target = target_from(uri, found, start_after, stop_at)
    async with open_resources(found, [target], hashing=False) as resources, stopped_by(stop) as asked:
        verification = Verification(target, found, resources, asked, compared=compared)
        async with reporting(verification.snapshot, progress):
            return await verification.run()


verify_bucket = blocking(verify_bucket_async, VerifyKeywords)
