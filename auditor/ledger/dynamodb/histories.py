"""The histories and the records of object keys in a DynamoDB ledger. Each history line is an item of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from auditor.errors import LedgerError
from auditor.ledger.base import Event, Expectation, KeyRecord, Notice
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.items import HISTORY, NOTICE, NOTICED, STATE, Item, identity, manifest, partition
from auditor.ledger.dynamodb.table import TRIES, Table, changing, in_order
from auditor.ledger.history import bounded, fingerprint, imported, noticed
from auditor.ledger.key_record import KeyRows, Mark, NoticedVersion, is_older, is_same, mark_of
from auditor.ledger.matching import NULL
from auditor.ledger.seals import judged_line, line_seal, mend


class DynamoHistories:
    """The part of a DynamoDB ledger that keeps the histories and the records of object keys."""

    _table: Table

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        different = {fingerprint(event): event for event in map(bounded, events)}.values()
        await in_order(different, lambda event: event.key, lambda event: self._note(bucket, event))

    async def _note(self, bucket: str, event: Event) -> None:
        """Write an event into its key's history, and then what it changes in the key's record: a Mark (such as
        "retired"), or the time of a digest's last verification.
        """
        place = self._table.place()
        await self._table.update(line_change(bucket, event, place))
        change = None
        if (mark := mark_of(event)) is not None:
            change = _mark(bucket, event, mark, place)
        elif event.what == "verified":
            change = _verified(bucket, event)
        if change is not None:
            await self._table.attempt(change)  # in vain if the record has a later time, or no such digest

    async def history(self, bucket: str, key: str) -> list[Event]:
        return lines_in(bucket, key, await self._table.query(partition(bucket, key), HISTORY))

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        pk, event = partition(bucket, notice.key), noticed(notice)
        of_key, of_version = (pk, NOTICE), (pk, NOTICED + identity(notice.version_id, notice.etag or ""))
        for _ in range(TRIES):
            found = await self._table.get_many([of_key, of_version], consistent=True)
            stored, told = found.get(of_key, Item()), found.get(of_version, Item())
            newest = stored.latest()
            if is_same(notice, newest):
                return True
            older = is_older(notice, newest)
            place = self._table.place()
            if notice.deleted and notice.version_id:
                await self._table.attempt(_mark(bucket, event, (notice.version_id, Mark.MARKER), place))
            # First, so that the newest notice has its line.
            await self._table.update(line_change(bucket, event, place))
            changes: list[Change] = []
            if not notice.deleted and notice.etag is not None:
                changes += _notice_version(Change(of_version), notice, told.noticed_version(), 0 if older else place)
            if not older:
                standing = Change(of_key).put("sequencer", notice.sequencer).put("deleted", notice.deleted)
                standing.put("at", notice.at).put("version_id", notice.version_id).put("place", place)
                changes.append(standing.when("place", stored.number("place")))
            for change in changes:
                if not await self._table.attempt(change):
                    break  # another notification came in between
            else:
                return not older
        raise LedgerError(
            f"the notifications of {notice.key[:100]!r} arrive too fast for the ledger table {self._table.name!r}"
        )

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        names = {(partition(bucket, one.key), manifest(one.algorithm, one.origin)): one for one in expectations}
        stored = await self._table.get_many(names, consistent=True)

        async def keep(one: Expectation) -> bool:
            name = (partition(bucket, one.key), manifest(one.algorithm, one.origin))
            for _ in range(TRIES):
                present = stored.get(name, Item())
                if present and (present.text("digest"), present.number("size")) == (one.digest, one.size):
                    return False
                place = self._table.place()
                change = Change(name).when("place", present.number("place")).put("place", place)
                change.put("algorithm", one.algorithm).put("origin", one.origin).put("digest", one.digest)
                change.put("imported_at", one.imported_at).put("size", one.size)
                await self._table.update(line_change(bucket, imported(one), place))
                if await self._table.attempt(change):
                    stored.pop(name, None)
                    return True
                stored.update(await self._table.get_many([name], consistent=True))
            raise changing(self._table)

        return sum(await in_order(expectations, lambda one: one.key, keep))

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        items = await self._table.query(partition(bucket, key), STATE)
        return await self.record_of(bucket, key, items) if items else None

    async def record_of(self, bucket: str, key: str, items: Iterable[Item]) -> KeyRecord:
        """Make the record of a key from its items, after damaged digests are replaced by their copies in the key's
        history.
        """
        rows = KeyRows()
        for item in items:
            item.add_to(rows, bucket, key)
        if any(known.damaged for version, _ in rows.versions for known in version.digests.values()):
            mend(rows, await self.history(bucket, key))
        return rows.record(key)


def _verified(bucket: str, event: Event) -> Change | None:
    """Return the change that writes the time of a "verified" event into the item of its digest; None if the event names
    no digest. The change fails if there is no such digest, or if its item has the same or a later time.
    """
    algorithm = event.detail.get("algorithm")
    if event.etag is None or not algorithm:
        return None
    change = Change((partition(bucket, event.key), identity(event.version_id, event.etag))).when_there(algorithm)
    time = f"{algorithm}_verified_at"
    return change.put(time, event.at).when_any((time, "=", None), (time, "<", event.at))


def _mark(bucket: str, event: Event, mark: tuple[str, Mark], place: int) -> Change:
    """Return the change that writes a Mark (such as "retired") into its item. The change fails if the item has the same
    or a later time.

    event: gives the Mark's time and sequencer. mark: version ID and Mark. place: number that orders the writes of a
    key.
    """
    change = Change((partition(bucket, event.key), NOTICED + identity(*mark)))
    change.put("version_id", mark[0]).put("etag", str(mark[1])).put("at", event.at)
    change.put("sequencer", event.detail.get("sequencer", "")).put("place", place)
    return change.when_any(("at", "=", None), ("at", "<", event.at))


def _notice_version(change: Change, notice: Notice, present: NoticedVersion | None, place: int) -> list[Change]:
    """Return a list with the change that writes a notification into the item of its object version. Return [] if the
    item has a newer notification.

    present: the notification in the item; None if there is no item. place: number that orders the writes of a key; 0 if
    the key has a newer notification than this one.
    """
    if present and not present.replaced_by(notice.sequencer, place):
        return []
    change.when("place", present.place if present else None).put("sequencer", notice.sequencer)
    change.put("place", max(place, present.place) if present else place)
    return [change.put("version_id", notice.version_id or NULL).put("etag", notice.etag)]


def line_change(bucket: str, event: Event, place: int) -> Change:
    """Return the change that writes an event as a history line. If the table has an equal line, that line stays
    unchanged.

    place: number that orders the writes of a key.
    """
    kept = bounded(event)
    change = Change((partition(bucket, event.key), f"{HISTORY}{_sortable(kept.at)}#{fingerprint(kept).hex()}"))
    change.once("at", kept.at).once("what", kept.what)
    change.once("version_id", kept.version_id).once("etag", kept.etag).once("size", kept.size)
    return change.once("detail", dict(kept.detail)).once("place", place).once("seal", line_seal(bucket, kept))


def _sortable(at: str) -> str:
    return "".join(letter for letter in at if letter.isascii() and (letter.isalnum() or letter in "-:.+"))[:40]


def history_line(bucket: str, key: str, item: Item) -> Event:
    """Return the history line in an item."""
    what: Any = item.text("what")
    event = Event(
        key=key,
        at=item.text("at") or "",
        what=what,
        version_id=item.text("version_id"),
        etag=item.text("etag"),
        size=item.number("size"),
        detail={name: str(value.get("S")) for name, value in item.get("detail", {}).get("M", {}).items()},
    )
    return judged_line(bucket, event, item.text("seal"))


def lines_in(bucket: str, key: str, items: Iterable[Item]) -> list[Event]:
    """Return all history lines in these items of a key, in the order in which they were written.

    items: of any kind; items without history lines are skipped.
    """
    found = [item for item in items if item["sk"]["S"].startswith(HISTORY)]
    found.sort(key=lambda item: (item.number("place") or 0, item.text("at") or ""))
    return [history_line(bucket, key, item) for item in found]
