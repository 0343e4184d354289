"""Find the rows of a ledger that belong to a listed object, by the same rule for every kind of ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from auditor.errors import DigestConflict
from auditor.ledger.base import DigestStore, Entry, HealableDigests, Version
from auditor.model.object import AnyVersion

NULL: Final = "null"
"""The version ID that the ledger writes if the version is unknown. S3 uses it for objects written without
versioning."""


class LedgerRow(Struct, frozen=True):
    """The digests that the ledger has of one object version: a version ID and an ETag. The caller knows bucket
    and key.
    """

    version_id: str
    etag: str
    size: int
    digests: Mapping[str, str]
    healable: bool = False
    """True if the stored row is damaged, and the digests are those of the key's history."""


def healable_row(version: Version) -> LedgerRow:
    """Return the row of a version whose stored row is damaged. version: as the key's history has it."""
    digests = {name: known.digest for name, known in version.digests.items()}
    return LedgerRow(version.version_id, version.etag, version.size, digests, healable=True)


def match(rows: Iterable[LedgerRow], ref: AnyVersion, algorithms: Sequence[str]) -> dict[str, str]:
    """Return the digests of an object version by these algorithms, from the ledger's rows of its key; {} for none.

    Only rows with the same ETag and size count. For each algorithm there are three groups of rows: rows with the
    version ID of `ref`; rows without a version ID (NULL); and, if `ref` has no version ID, all rows. The first group
    with a digest decides. If the digests in this group differ, the algorithm is left out. The digests are
    HealableDigests if one of the rows is healable.
    """
    wanted = ref.version_id or NULL
    fitting = [row for row in rows if row.etag == ref.etag and row.size == ref.size]
    if not fitting:
        return {}
    if any(row.healable for row in fitting):
        return HealableDigests(_decided(fitting, wanted, algorithms))
    return _decided(fitting, wanted, algorithms)


def _decided(fitting: list[LedgerRow], wanted: str, algorithms: Sequence[str]) -> dict[str, str]:
    if len(fitting) == 1 and (wanted == NULL or fitting[0].version_id in (wanted, NULL)):
        digests = fitting[0].digests
        return {algorithm: digests[algorithm] for algorithm in algorithms if algorithm in digests}
    own = [row for row in fitting if row.version_id == wanted]
    null = [row for row in fitting if row.version_id == NULL]
    others = fitting if wanted == NULL else []
    found: dict[str, str] = {}
    for algorithm in algorithms:
        for group in (own, null, others):
            recorded = {row.digests[algorithm] for row in group if algorithm in row.digests}
            if recorded:
                if len(recorded) == 1:
                    found[algorithm] = recorded.pop()
                break
    return found


def healable_keys(refs: Iterable[AnyVersion], known: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the keys of which a look-up has found a damaged row that can be healed, each once. known: its answers."""
    found = (ref.key for ref, digests in zip(refs, known, strict=True) if isinstance(digests, HealableDigests))
    return list(dict.fromkeys(found))


def contradiction(entry: Entry, size: int, digests: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first difference between an entry and the ledger's row: "size" or the algorithm, and the ledger's
    value.

    size, digests: the size and the digests in the ledger's row. Return None if the two agree.
    """
    if size != entry.size:
        return "size", str(size)
    for algorithm, digest in entry.digests.items():
        if digests.get(algorithm, digest) != digest:
            return algorithm, digests[algorithm]
    return None


def conflict(entry: Entry, what: str) -> DigestConflict:
    """Return the error for an entry that contradicts the ledger.

    what: the algorithm whose digests differ, or "size".
    """
    return DigestConflict(
        f"the ledger holds another {what} for the same version of {entry.key[:100]!r} in bucket {entry.bucket!r}:"
        " the object or its record was changed; nothing was overwritten"
    )


async def has_digests(ledger: DigestStore, bucket: str, ref: AnyVersion, digests: Mapping[str, str]) -> bool:
    """True if the ledger has a digest of an object version by each of these algorithms.

    It has none after a write if its row is damaged, and no line of the history stands for the row. Raises LedgerError.
    """
    (known,) = await ledger.known(bucket, [ref], list(digests))
    return known.keys() >= digests.keys()
