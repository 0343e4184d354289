"""Digests in the shared ledger: look them up and add them. One write adds a digest and its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from auditor.errors import DigestConflict, LedgerError
from auditor.ledger.base import AUDITOR, S3, Entry
from auditor.ledger.dynamodb.changes import Change, line
from auditor.ledger.dynamodb.items import DIGESTS, Item, Name, entry_name, identity, number, partition, row, text
from auditor.ledger.dynamodb.table import ConditionFailed, Table, in_order
from auditor.ledger.history import conflicted
from auditor.ledger.matching import NULL, LedgerRow, conflict, contradiction, match
from auditor.model.object import AnyVersion

_TRIES: Final = 10


async def known(
    table: Table, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
) -> list[Mapping[str, str]]:
    """Read exact identities first, in batches. Then, for refs that have no version, read all identities of their key.

    The second step finds digests that were recorded under a version that the listing does not name.
    """
    items = await table.get_many(name for ref in refs for name in _names(bucket, ref))
    rows = {name: row(item) for name, item in items.items()}
    found: list[Mapping[str, str]] = [
        match([rows[name] for name in _names(bucket, ref) if name in rows], ref, algorithms) for ref in refs
    ]
    missing = [
        index
        for index, ref in enumerate(refs)
        if ref.version_id in (None, NULL) and len(found[index]) < len(set(algorithms))
    ]
    answers = await in_order(missing, lambda index: index, lambda index: _under_key(table, bucket, refs[index]))
    for index, answer in zip(missing, answers, strict=True):
        found[index] = match(answer, refs[index], algorithms)
    return found


def _names(bucket: str, ref: AnyVersion) -> list[Name]:
    """Return the names of the ref's items: with its own version, and with none."""
    versions = dict.fromkeys((ref.version_id or NULL, NULL))
    return [(partition(bucket, ref.key), identity(version, ref.etag)) for version in versions]


async def _under_key(table: Table, bucket: str, ref: AnyVersion) -> list[LedgerRow]:
    """Return all rows of the ref's key that have its size."""
    items = await table.query(
        partition(bucket, ref.key),
        DIGESTS,
        FilterExpression="#size = :size",
        ExpressionAttributeNames={"#size": "size"},
        ExpressionAttributeValues={":size": {"N": str(ref.size)}},
    )
    return [row(item) for item in items]


async def record(table: Table, entry: Entry) -> bool | DigestConflict:
    """Record an entry: write as if the item were absent, and read the item if that is refused."""
    stored: Item = {}
    for _ in range(_TRIES):
        standing = row(stored) if stored else None
        if standing and (clash := contradiction(entry, standing.size, standing.digests)):
            await table.update(line(entry.bucket, conflicted(entry, *clash), table.place()))
            return conflict(entry, clash[0])
        new = [name for name in entry.digests if name not in stored or _becomes_ours(entry, stored, name)]
        if not new:
            return False
        try:
            await table.update(_change(entry, stored, new, table))
        except ConditionFailed:
            stored = await table.get(entry_name(entry)) or {}
        else:
            return True
    raise LedgerError(f"the ledger table {table.name!r} changes while it is written: stop what deletes its items")


def _becomes_ours(entry: Entry, stored: Item, algorithm: str) -> bool:
    """True if the ledger has S3's digest and the entry's is the auditor's."""
    return entry.source == AUDITOR and text(stored, f"{algorithm}_source") == S3


def _change(entry: Entry, stored: Item, new: Sequence[str], table: Table) -> Change:
    """Return the change that sets the new digests, on the condition that the item still is as it was read.

    If S3's digest becomes ours, its time and place are kept.
    """
    name = entry_name(entry)
    change = Change(name).put("size", entry.size).once("hashed_at", entry.hashed_at).once("place", table.place())
    change.when("size", entry.size if "size" in stored else None)
    if name[1] != f"{entry.version_id or NULL}#{entry.etag}":
        change.once("version_id", entry.version_id or NULL).once("etag", entry.etag)
    for algorithm in new:
        source = text(stored, f"{algorithm}_source")
        change.when(algorithm, text(stored, algorithm)).when(f"{algorithm}_source", source)
        if source is not None:
            change.put(f"{algorithm}_s3_at", text(stored, f"{algorithm}_at"))
            change.put(f"{algorithm}_s3_place", number(stored, f"{algorithm}_place"))
        change.put(algorithm, entry.digests[algorithm]).put(f"{algorithm}_source", entry.source)
        change.put(f"{algorithm}_at", entry.hashed_at).put(f"{algorithm}_bytes_read", entry.bytes_read)
        change.put(f"{algorithm}_place", table.place())
    return change
