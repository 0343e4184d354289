"""What a ledger is: it remembers the digests of objects, so that nothing is hashed twice and nothing changes unseen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from auditor.models import ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Digests of one object version. version_id: None where it is not known (the ledger writes "null").

    etag: without quotes. size: bytes. digests: algorithm ("sha256") to lower-case hex. hashed_at: ISO 8601, UTC.
    """

    bucket: str
    key: str
    version_id: str | None
    etag: str
    size: int
    digests: Mapping[str, str]
    hashed_at: str


class Ledger(Protocol):
    """Every write is conditional and idempotent. Raises errors.LedgerError when the store cannot be used."""

    async def known(self, bucket: str, refs: Sequence[ObjectRef], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        """For each ref, in order, the digests it has of `algorithms` ({} where none).

        A row matches by key, etag and size, and by version when both sides know one ("null" is not knowing).
        """
        ...

    async def record(self, entry: Entry) -> bool:
        """Add the entry's digests to its identity (bucket, key, version_id or "null", etag).

        True when something new was written, False when it stood there already; raises errors.DigestConflict when
        another digest of the same algorithm stands there, which is then left as it is.
        """
        ...
