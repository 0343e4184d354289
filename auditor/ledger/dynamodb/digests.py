"""Look up and record digests in a DynamoDB ledger. A digest and its history line are added in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from auditor.errors import DigestConflict
from auditor.ledger.base import AUDITOR, S3, Entry, Event, Version
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.histories import DynamoHistories, line_change
from auditor.ledger.dynamodb.items import DIGESTS, Item, Name, entry_name, identity, partition, seal_of
from auditor.ledger.dynamodb.table import LONGEST_NAME, TRIES, ConditionFailed, changing, in_order
from auditor.ledger.history import conflicted, recorded
from auditor.ledger.matching import NULL, LedgerRow, conflict, contradiction, healable_row, match
from auditor.ledger.seals import healed, single_digests, version_of_line
from auditor.model.object import AnyVersion


class DynamoDigests(DynamoHistories):
    """The part of a DynamoDB ledger that keeps digests. A key's history stands for a damaged digest of the key."""

    async def known(
        self, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        """Look up the digests of object versions, as DigestStore.known() describes, in up to two steps.

        1. Read the row of each object version. 2. For versions with a digest still missing, read the row for an unknown
        version ID too; for versions without a version ID, all items of the key, because another version with the same
        ETag may have the digest.
        """
        names = [_row_name(bucket, ref, ref.version_id) for ref in refs]
        items = await self._table.get_many(names)
        found = [
            await self._answer(bucket, ref, algorithms, [items[name]] if name in items else [])
            for ref, name in zip(refs, names, strict=True)
        ]
        missing = [index for index, digests in enumerate(found) if len(digests) < len(set(algorithms))]
        named = [index for index in missing if refs[index].version_id not in (None, NULL)]
        second = {index: _row_name(bucket, refs[index], NULL) for index in named}
        items |= await self._table.get_many(second.values())

        async def complete(index: int) -> None:
            if index in second:
                rows = [items[name] for name in (names[index], second[index]) if name in items]
            else:
                rows = await self._table.query(partition(bucket, refs[index].key), DIGESTS, consistent=False)
            found[index] = await self._answer(bucket, refs[index], algorithms, rows)

        await in_order(missing, lambda index: index, complete)
        return found

    async def _answer(
        self, bucket: str, ref: AnyVersion, algorithms: Sequence[str], items: Sequence[Item]
    ) -> Mapping[str, str]:
        return match(await self._rows(bucket, ref.key, items), ref, algorithms)

    async def record(self, entry: Entry) -> bool:
        answer = await self._record(entry)
        if isinstance(answer, DigestConflict):
            raise answer
        return answer

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        return await in_order(entries, entry_name, self._record)

    async def _record(self, entry: Entry) -> bool | DigestConflict:
        """Record an entry, as record() does, but return a DigestConflict instead of raising it.

        First write as if the ledger had nothing of the object version. If DynamoDB refuses that, read the item that
        exists, and write again.
        """
        stored = Item()
        for _ in range(TRIES):
            standing = stored.row() if stored else None
            if standing and (clash := contradiction(entry, standing.size, standing.digests)):
                await self._table.update(line_change(entry.bucket, conflicted(entry, *clash), self._table.place()))
                return conflict(entry, clash[0])
            new = [name for name in entry.digests if name not in stored or _becomes_ours(entry, stored, name)]
            if not new:
                return False
            lines = [recorded(entry, name) for name in new]
            row_change = _change(entry, stored, lines, self._table.place())
            try:
                written = (line_change(entry.bucket, one, self._table.place()) for one in lines)
                await self._table.update_all([row_change, *written])
            except ConditionFailed:
                stored = await self._healed_item(entry)
            else:
                return True
        raise changing(self._table)

    async def _healed_item(self, entry: Entry) -> Item:
        """Return the item of an entry's object version, after healing its damaged digests; an empty item if there is
        none.
        """
        item = await self._table.get(entry_name(entry)) or Item()
        if item and item.checked_row(entry.bucket, entry.key)[1] and await self._heal(entry.bucket, entry.key):
            return await self._table.get(entry_name(entry)) or Item()
        return item

    async def heal(self, bucket: str, keys: Sequence[str]) -> int:
        return sum(await in_order(keys, lambda key: key, lambda key: self._heal(bucket, key)))

    async def _heal(self, bucket: str, key: str) -> int:
        """Heal the rows of a key, as DigestStore.heal() describes.

        Each row is changed on the condition that it still has the digest and the seal that were read.
        """
        written = 0
        items = await self._table.query(partition(bucket, key), DIGESTS)
        for item, version in await self._healed(bucket, key, items):
            change = Change((item["pk"]["S"], item["sk"]["S"])).put("size", version.size)
            if "etag" in item:
                change.put("version_id", version.version_id).put("etag", version.etag)
            _put(change, bucket, key, version, item, "seal")
            written += await self._table.attempt(change)
        return written

    async def _healed(self, bucket: str, key: str, items: Sequence[Item]) -> list[tuple[Item, Version]]:
        """Return each damaged digest in these items of a key that its history stands for: the item, and the version,
        with this digest alone, that it must have.
        """
        if not any(item.checked_row(bucket, key)[1] for item in items):
            return []
        rows = [(item, one) for item in items for one in single_digests(item.evidence(bucket, key)[0])]
        found = healed([one for _, one in rows], await self.history(bucket, key))
        healable = [(rows[place][0], version) for place, version in found]
        # A line may name another row than the damaged one: its digest then belongs into another item.
        return [one for one in healable if one[0]["sk"]["S"] == identity(one[1].version_id, one[1].etag)]

    async def _rows(self, bucket: str, key: str, items: Sequence[Item]) -> list[LedgerRow]:
        """Return the digests in these items of a key: those of damaged rows by the copies in its history, if it has
        any.
        """
        rows = [item.checked_row(bucket, key)[0] for item in items]
        return rows + [healable_row(version) for _, version in await self._healed(bucket, key, items)]


def _row_name(bucket: str, ref: AnyVersion, version_id: str | None) -> Name:
    """Return the name of the row of an object version: of this version ID, with the key and the ETag of `ref`."""
    return partition(bucket, ref.key), identity(version_id, ref.etag)


def _becomes_ours(entry: Entry, stored: Item, algorithm: str) -> bool:
    """True if the ledger has this digest from S3, and the entry has it from the auditor. The auditor then becomes the
    digest's source.
    """
    return entry.source == AUDITOR and stored.text(f"{algorithm}_source") == S3


def _change(entry: Entry, stored: Item, lines: Iterable[Event], place: int) -> Change:
    """Return the change that adds the new digests to an object version's item, if the item has not changed since it was
    read.

    stored: the item as it was read; an empty one if there was none. lines: the "recorded" events of the new digests.
    place: number that orders the writes of a key.
    """
    name = entry_name(entry)
    change = Change(name).put("size", entry.size).once("hashed_at", entry.hashed_at).once("place", place)
    change.when("size", entry.size if "size" in stored else None)
    if (
        name[1] != f"{entry.version_id or NULL}#{entry.etag}"
        or len(name[1].encode("utf-8", "surrogatepass")) > LONGEST_NAME
    ):
        change.once("version_id", entry.version_id or NULL).once("etag", entry.etag)
    for line in lines:
        _put(change, entry.bucket, entry.key, version_of_line(line), stored, "source")
    return change


def _put(change: Change, bucket: str, key: str, version: Version, stored: Item, unchanged: str) -> None:
    """Add the one digest of an object version to a change, with its source, its dates and its seal, on the condition
    that the item still has the digest and another field of it that were read.

    stored: the item as it was read. unchanged: "source" or "seal", the other field.
    """
    ((name, known),) = version.digests.items()
    change.when(name, stored.text(name)).when(f"{name}_{unchanged}", stored.text(f"{name}_{unchanged}"))
    change.put(name, known.digest).put(f"{name}_source", known.source)
    change.put(f"{name}_at", known.recorded_at).put(f"{name}_bytes_read", known.bytes_read)
    change.put(f"{name}_seal", seal_of(bucket, key, version, name))
