"""Look up and record digests in a DynamoDB ledger. A digest and its history line are added in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from auditor.errors import DigestConflict, LedgerError
from auditor.ledger.base import AUDITOR, S3, Entry, Known, Version
from auditor.ledger.dynamodb.calls import ConditionFailed
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.items import (
    DIGESTS,
    Item,
    Name,
    by_etag,
    checked_row,
    entry_name,
    evidence,
    identity,
    number,
    partition,
    row,
    seal_of,
    sound_row,
    text,
)
from auditor.ledger.dynamodb.lines import add_line, entry_of, lines_of
from auditor.ledger.dynamodb.shards import LONGEST_NAME
from auditor.ledger.dynamodb.table import Table, in_order
from auditor.ledger.history import conflicted, fingerprint, recorded
from auditor.ledger.matching import NULL, LedgerRow, conflict, contradiction, match
from auditor.ledger.seals import healed
from auditor.model.object import AnyVersion

_TRIES: Final = 10


async def known(
    table: Table, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
) -> list[Mapping[str, str]]:
    """Look up the digests of object versions, as DigestStore.known() describes, in up to four steps.

    1. Read the row of each object version. 2. For versions with a digest still missing, read the row for an unknown
    version ID, and the first "recorded" history line of the ETag: the line's name has no version ID, so it is found for
    any version. 3. Read the row of the version that the line names, which may be damaged. 4. For versions without a
    version ID, read all items of the key: another version with the same ETag may have a digest that is missing.
    """
    wanted = len(set(algorithms))
    found: list[Mapping[str, str]] = [{}] * len(refs)
    items: dict[Name, Item] = {}

    async def answer(index: int, versions: Iterable[str | None], line: list[LedgerRow]) -> None:
        ref = refs[index]
        names = dict.fromkeys(_row_name(bucket, ref, one) for one in versions)
        rows = await _rows(table, bucket, ref.key, [items[name] for name in names if name in items])
        found[index] = match([*rows, *line], ref, algorithms)

    items |= await table.get_many(_row_name(bucket, ref, ref.version_id) for ref in refs)
    for index, ref in enumerate(refs):
        await answer(index, [ref.version_id], [])
    missing = [index for index, digests in enumerate(found) if len(digests) < wanted]
    lines = await _first_lines(table, bucket, [refs[index] for index in missing], items)
    for index, line in zip(missing, lines, strict=True):
        await answer(index, [refs[index].version_id, NULL, *(one.version_id for one in line)], line)
    missing = [index for index in missing if refs[index].version_id in (None, NULL) and len(found[index]) < wanted]
    answers = await in_order(missing, lambda index: index, lambda index: _under_key(table, bucket, refs[index]))
    for index, rows in zip(missing, answers, strict=True):
        found[index] = match(rows, refs[index], algorithms)
    return found


def _row_name(bucket: str, ref: AnyVersion, version_id: str | None) -> Name:
    """Return the name of the row of an object version: of this version ID, with the key and the ETag of `ref`."""
    return partition(bucket, ref.key), identity(version_id, ref.etag)


async def _first_lines(
    table: Table, bucket: str, refs: Sequence[AnyVersion], items: dict[Name, Item]
) -> list[list[LedgerRow]]:
    """Return the digests in the first "recorded" history line of each ETag, in order.

    An answer is [] without a line, or if a version with the same ETag has other digests. items: the rows that have been
    read; the rows for unknown version IDs, and those of the versions that the lines name, are added.
    """

    async def read(names: Iterable[Name]) -> None:
        items.update(await table.get_many(dict.fromkeys(name for name in names if name not in items)))

    names = [(partition(bucket, ref.key), by_etag(ref.etag)) for ref in refs]
    await read([*names, *(_row_name(bucket, ref, NULL) for ref in refs if ref.version_id not in (None, NULL))])
    lines = [
        [sound_row(bucket, ref.key, items[name])] if name in items and "mixed" not in items[name] else []
        for ref, name in zip(refs, names, strict=True)
    ]
    await read(_row_name(bucket, ref, one.version_id) for ref, line in zip(refs, lines, strict=True) for one in line)
    return lines


async def _under_key(table: Table, bucket: str, ref: AnyVersion) -> list[LedgerRow]:
    """Return the digests of all versions under the key of `ref` that have the size of `ref`."""
    items = await table.query(
        partition(bucket, ref.key),
        DIGESTS,
        FilterExpression="#size = :size",
        ExpressionAttributeNames={"#size": "size"},
        ExpressionAttributeValues={":size": {"N": str(ref.size)}},
    )
    return await _rows(table, bucket, ref.key, items)


async def record(table: Table, entry: Entry) -> bool | DigestConflict:
    """Record an entry, as DigestStore.record() describes, but return a DigestConflict instead of raising it.

    First write as if the ledger had nothing of the object version. If DynamoDB refuses that, read the item that exists,
    and write again.
    """
    stored: Item = {}
    first: Item | None = None
    for _ in range(_TRIES):
        standing = row(stored) if stored else None
        if standing and (clash := contradiction(entry, standing.size, standing.digests)):
            await add_line(table, entry.bucket, conflicted(entry, *clash), table.place())
            return conflict(entry, clash[0])
        new = [name for name in entry.digests if name not in stored or _becomes_ours(entry, stored, name)]
        if not new:
            return False
        try:
            place = table.place()
            await table.update_all([_change(entry, stored, new, place), *_lines(entry, new, first, place)])
        except ConditionFailed as refused:
            if 0 in refused.at:
                stored = await _healed_item(table, entry)
            else:
                first = await table.get(_first_name(entry)) or {}
        else:
            return True
    raise LedgerError(f"the ledger table {table.name!r} changes while it is written: stop what deletes its items")


async def _healed_item(table: Table, entry: Entry) -> Item:
    """Return the item of an entry's object version, after healing its damaged digests; {} if there is none."""
    item = await table.get(entry_name(entry)) or {}
    if item and checked_row(entry.bucket, entry.key, item)[1] and await heal(table, entry.bucket, entry.key):
        return await table.get(entry_name(entry)) or {}
    return item


def _becomes_ours(entry: Entry, stored: Item, algorithm: str) -> bool:
    """True if the ledger has this digest from S3, and the entry has it from the auditor. The auditor then becomes the
    digest's source.
    """
    return entry.source == AUDITOR and text(stored, f"{algorithm}_source") == S3


def _change(entry: Entry, stored: Item, new: Sequence[str], place: int) -> Change:
    """Return the change that adds the new digests to an object version's item, if the item has not changed since it was
    read.

    stored: the item as it was read; {} if there was none. new: the algorithms. place: number that orders the writes of
    a key.
    """
    name = entry_name(entry)
    change = Change(name).put("size", entry.size).once("hashed_at", entry.hashed_at).once("place", place)
    change.when("size", entry.size if "size" in stored else None)
    if (
        name[1] != f"{entry.version_id or NULL}#{entry.etag}"
        or len(name[1].encode("utf-8", "surrogatepass")) > LONGEST_NAME
    ):
        change.once("version_id", entry.version_id or NULL).once("etag", entry.etag)
    for algorithm in new:
        source = text(stored, f"{algorithm}_source")
        change.when(algorithm, text(stored, algorithm)).when(f"{algorithm}_source", source)
        _put(change, entry, algorithm, place)
    return change


def _put(change: Change, entry: Entry, algorithm: str, place: int) -> None:
    """Add one digest of the entry to a change, with its source, its dates and its seal.

    place: number that orders the writes of a key.
    """
    found = LedgerRow(entry.version_id or NULL, entry.etag, entry.size, entry.digests)
    known = Known(
        digest=entry.digests[algorithm],
        source=entry.source,
        recorded_at=entry.hashed_at,
        verified_at=None,
        bytes_read=entry.bytes_read,
    )
    change.put(algorithm, known.digest).put(f"{algorithm}_source", known.source)
    change.put(f"{algorithm}_at", known.recorded_at).put(f"{algorithm}_bytes_read", known.bytes_read)
    change.put(f"{algorithm}_place", place)
    change.put(f"{algorithm}_seal", seal_of(entry.bucket, entry.key, found, algorithm, known))


def _first_name(entry: Entry) -> Name:
    return partition(entry.bucket, entry.key), by_etag(entry.etag)


def _lines(entry: Entry, new: Sequence[str], first: Item | None, place: int) -> list[Change]:
    """Return the changes that write one history line for the new digests.

    new: the algorithms. first: the first line of this ETag; None or {} if there is none. If the entry contradicts the
    first line, the first line is marked as "mixed": it does not hold for all versions with this ETag. place: number
    that orders the writes of a key.
    """
    pk, sk = _first_name(entry)
    if not first:
        change = Change((pk, sk)).when("size", None)
        changes = [change]
    else:
        change = Change((pk, f"{sk}#{fingerprint(recorded(entry, new[0])).hex()}"))
        changes = [change]
        stands = row(first)
        if contradiction(entry, stands.size, stands.digests):
            changes.append(Change((pk, sk)).put("mixed", True))
    change.put("version_id", entry.version_id or NULL).put("etag", entry.etag).put("size", entry.size)
    for algorithm in new:
        _put(change, entry, algorithm, place)
    return changes


async def heal(table: Table, bucket: str, key: str) -> int:
    """Heal the rows of a key, as DigestStore.heal() describes.

    Each row is changed on the condition that it still has the digest and the seal that were read.
    """
    written = 0
    items = await table.query(partition(bucket, key), DIGESTS, ConsistentRead=True)
    for item, version, name in await _healed(table, bucket, key, items):
        change = Change((item["pk"]["S"], item["sk"]["S"])).put("size", version.size)
        change.when(name, text(item, name)).when(f"{name}_seal", text(item, f"{name}_seal"))
        if "etag" in item:
            change.put("version_id", version.version_id).put("etag", version.etag)
        _put(change, entry_of(bucket, key, version, name), name, number(item, f"{name}_place") or 0)
        with suppress(ConditionFailed):
            await table.update(change)
            written += 1
    return written


async def _healed(table: Table, bucket: str, key: str, items: Sequence[Item]) -> list[tuple[Item, Version, str]]:
    """Return each damaged digest in these items of a key that its history stands for: the item, and the version and
    algorithm that it must have.
    """
    if not any(checked_row(bucket, key, item)[1] for item in items):
        return []
    rows = []
    for item in items:
        version, _ = evidence(bucket, key, item)
        rows += [(item, replace(version, digests={name: one}), name) for name, one in version.digests.items()]
    found = healed([row[1:] for row in rows], await lines_of(table, bucket, key))
    healable = [(rows[place][0], version, name) for place, version, name in found]
    # A line may name another row than the damaged one: its digest then belongs into another item.
    return [one for one in healable if one[0]["sk"]["S"] == identity(one[1].version_id, one[1].etag)]


async def _rows(table: Table, bucket: str, key: str, items: Sequence[Item]) -> list[LedgerRow]:
    """Return the digests in these items of a key: those of damaged rows by the copies in its history, if it has any."""
    rows = [sound_row(bucket, key, item) for item in items]
    for _, one, name in await _healed(table, bucket, key, items):
        rows.append(LedgerRow(one.version_id, one.etag, one.size, {name: one.digests[name].digest}, healable=True))
    return rows
