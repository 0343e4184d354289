"""Record digests in the ledger: entries that arrive during a write are written together after it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from auditor.errors import DigestConflict
from auditor.hashing.digest.result import Hashed
from auditor.ledger.base import DigestStore
from auditor.model.dates import now_in_utc


@dataclass(slots=True, eq=False)
class _Pending:
    """written: the ledger's answer; None until then."""

    bucket: str
    hashed: Hashed
    written: bool | DigestConflict | None = None


class BatchWriter:
    """Shared by all objects of a process: one round trip, or one sync of a disk, writes any number of entries."""

    def __init__(self, ledger: DigestStore) -> None:
        self._ledger = ledger
        self._pending: list[_Pending] = []
        self._writing = asyncio.Lock()

    async def record(self, bucket: str, hashed: Hashed) -> DigestConflict | None:
        """Return when the ledger has the digests, or the conflict with its own. Raises LedgerError."""
        mine = _Pending(bucket, hashed)
        self._pending.append(mine)
        try:
            async with self._writing:
                if mine.written is None:
                    await self._write()
        finally:
            # After a failure or a cancellation the other callers still write their own entries.
            if mine in self._pending:
                self._pending.remove(mine)
        return mine.written if isinstance(mine.written, DigestConflict) else None

    async def _write(self) -> None:
        batch = list(self._pending)
        now = now_in_utc()
        found = await self._ledger.record_many([one.hashed.entry(one.bucket, now) for one in batch])
        for one, written in zip(batch, found, strict=True):
            one.written = written
        self._pending = [one for one in self._pending if one.written is None]
