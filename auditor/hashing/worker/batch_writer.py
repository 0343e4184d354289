"""Digests on their way into the ledger: those that come while it writes are written together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from auditor.errors import DigestConflict
from auditor.hashing.digest.result import Hashed
from auditor.ledger.base import DigestStore, Entry


@dataclass(slots=True, eq=False)
class _Pending:
    """written: what record() gives; None until then."""

    entry: Entry
    written: bool | DigestConflict | None = None


class BatchWriter:
    """One for all that is hashed at once: a write is one round trip, or one sync of a disk, however many it holds."""

    def __init__(self, ledger: DigestStore) -> None:
        self._ledger = ledger
        self._pending: list[_Pending] = []
        self._turn = asyncio.Lock()

    async def record(self, bucket: str, hashed: Hashed) -> DigestConflict | None:
        """Returns when the ledger has it, or says that it holds another digest. Raises LedgerError."""
        mine = _Pending(hashed.entry(bucket))
        self._pending.append(mine)
        try:
            async with self._turn:
                if mine.written is None:
                    await self._write()
        finally:
            # Whoever fails, or is cancelled, takes nobody's entry along: the others then write their own.
            if mine in self._pending:
                self._pending.remove(mine)
        return mine.written if isinstance(mine.written, DigestConflict) else None

    async def _write(self) -> None:
        batch = list(self._pending)
        found = await self._ledger.record_many([one.entry for one in batch])
        for one, written in zip(batch, found, strict=True):
            one.written = written
        self._pending = [one for one in self._pending if one.written is None]
