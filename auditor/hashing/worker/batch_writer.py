"""Write digests into the ledger in batches: all digests that arrive during one write go into the next write
together.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from auditor.errors import DigestConflict
from auditor.hashing.digest.result import Hashed
from auditor.ledger.base import DigestStore
from auditor.model.dates import now_in_utc


class _Pending(Struct, eq=False):
    """The digests of one object, until the ledger has them.

    written: the ledger's answer; None before the write.
    """

    bucket: str
    hashed: Hashed
    written: bool | DigestConflict | None = None


class BatchWriter:
    """Writes the digests of all objects that a process hashes, many in one round trip or disk sync."""

    def __init__(self, ledger: DigestStore) -> None:
        self._ledger = ledger
        self._pending: list[_Pending] = []
        self._writing = asyncio.Lock()

    async def record(self, bucket: str, hashed: Hashed) -> bool | DigestConflict:
        """Write an object's digests into the ledger, and wait until the ledger has them.

        Return the answer of DigestStore.record_many: a DigestConflict if the ledger has another digest of the object.
        Raises LedgerError.
        """
        mine = _Pending(bucket, hashed)
        self._pending.append(mine)
        try:
            async with self._writing:
                if mine.written is None:
                    await self._write()
        finally:
            # If this write fails or is cancelled, the other callers still write their own entries.
            if mine in self._pending:
                self._pending.remove(mine)
        return mine.written or False

    async def _write(self) -> None:
        batch = list(self._pending)
        now = now_in_utc()
        found = await self._ledger.record_many([one.hashed.entry(one.bucket, now) for one in batch])
        for one, written in zip(batch, found, strict=True):
            one.written = written
        self._pending = [one for one in self._pending if one.written is None]
