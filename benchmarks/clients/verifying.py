"""Verify objects with a ledger: read each one again, compare it, and note the match."""

from __future__ import annotations

import hashlib
import tempfile
from typing import Any, Final
from uuid import uuid4

import auditor
from auditor.aio import loop as loops
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry
from benchmarks.meter import Meter
from benchmarks.server.objects import BLOCK, BUCKET, etag_of, key_of

RECORDED: Final = 500
"""Entries of one record_many()."""


def verified(meter: Meter, *, url: str, ledger: str, objects: int, size: int) -> dict[str, Any]:
    """Measure a whole verification, in which every object is due and matches. A verification of a few objects goes
    before it, and opens everything once.
    """
    digests = {"sha256": hashlib.sha256(BLOCK[:size]).hexdigest()}

    async def record(uri: str) -> None:
        async with open_ledger(uri, endpoint_url=url) as opened:
            for start in range(0, objects, RECORDED):
                numbers = range(start, min(start + RECORDED, objects))
                await opened.record_many([entry_of(number, size, digests) for number in numbers])

    with tempfile.TemporaryDirectory() as folder:
        uri = f"dynamodb:{uuid4().hex}" if ledger == "dynamodb" else f"sqlite:{folder}/ledger.db"
        loops.run(record(uri))
        options: dict[str, Any] = {"ledger": uri, "endpoint_url": url, "out": folder, "max_rate": "unlimited"}
        auditor.verify_bucket(f"s3://{BUCKET}/{key_of(9)[:-9]}", **options)
        with meter.measuring():
            summary = auditor.verify_bucket(f"s3://{BUCKET}", **options)
    if summary.outcomes["match"] != objects:
        raise RuntimeError(f"of {objects} objects: {summary.outcomes}")
    return {}


def entry_of(number: int, size: int, digests: dict[str, str]) -> Entry:
    """The ledger's entry for an object of the server."""
    return Entry(
        bucket=BUCKET,
        key=key_of(number),
        version_id=None,
        etag=etag_of(number),
        size=size,
        digests=digests,
        hashed_at="2026-01-02T03:04:05Z",
        bytes_read=size,
    )
