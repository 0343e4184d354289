"""Find the rows of a ledger that belong to a listed object, by the same rule for every kind of ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from auditor.errors import DigestConflict
from auditor.ledger.base import Entry
from auditor.model.object import AnyVersion

NULL: Final = "null"
"""The ledger's word for an unknown version; also S3's name for the version of an unversioned object."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The digests in the ledger of one object version (version ID and ETag). The caller knows its bucket and key."""

    version_id: str
    etag: str
    size: int
    digests: Mapping[str, str]


def match(rows: Iterable[LedgerRow], ref: AnyVersion, algorithms: Sequence[str]) -> dict[str, str]:
    """Return the wanted digests of an object version among the rows of its key; {} if there are none.

    A row fits if ETag and size are equal. The rows with the version ID of `ref` decide first, then those without a
    version ID, and then, if `ref` has none, all rows. If the rows that decide disagree, there is no digest.
    """
    wanted = ref.version_id or NULL
    fitting = [row for row in rows if row.etag == ref.etag and row.size == ref.size]
    own = [row for row in fitting if row.version_id == wanted]
    null = [row for row in fitting if row.version_id == NULL]
    others = fitting if wanted == NULL else []
    found: dict[str, str] = {}
    for algorithm in algorithms:
        for group in (own, null, others):
            digests = {row.digests[algorithm] for row in group if algorithm in row.digests}
            if digests:
                if len(digests) == 1:
                    found[algorithm] = digests.pop()
                break
    return found


def contradiction(entry: Entry, size: int, digests: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first difference between an entry and the ledger: (algorithm or "size", value in the ledger).

    None if they agree.
    """
    if size != entry.size:
        return "size", str(size)
    for algorithm, digest in entry.digests.items():
        if digests.get(algorithm, digest) != digest:
            return algorithm, digests[algorithm]
    return None


def conflict(entry: Entry, what: str) -> DigestConflict:
    """Return the error for an entry that contradicts the ledger. what: the algorithm, or "size"."""
    return DigestConflict(
        f"the ledger holds another {what} for the same version of {entry.key[:100]!r} in bucket {entry.bucket!r}:"
        " the object or its record was changed; nothing was overwritten"
    )
