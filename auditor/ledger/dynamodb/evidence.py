"""The history and the records of keys in the shared ledger."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from auditor.errors import LedgerError
from auditor.ledger.base import Event, Expectation, KeyRecord, Notice
from auditor.ledger.dynamodb.changes import Change, line
from auditor.ledger.dynamodb.items import (
    DIGESTS,
    HISTORY,
    NOTICE,
    NOTICED,
    STATE,
    Item,
    add,
    identity,
    latest,
    manifest,
    noticed_version,
    number,
    partition,
    recorded_lines,
    text,
)
from auditor.ledger.dynamodb.table import ConditionFailed, Table, in_order
from auditor.ledger.history import fingerprint, imported, noticed
from auditor.ledger.key_record import KeyRows, Mark, NoticedVersion, is_older, is_same, key_record_of, mark_of
from auditor.ledger.matching import NULL

_TRIES: Final = 10


async def note(table: Table, bucket: str, events: Sequence[Event]) -> None:
    different = {fingerprint(event): event for event in events}.values()
    await in_order(different, lambda event: event.key, lambda event: _note(table, bucket, event))


async def _note(table: Table, bucket: str, event: Event) -> None:
    """Write the line of an event, then verified_at or its mark. If it is interrupted in between, the digest counts as
    not verified, and a deletion as not told.
    """
    place = table.place()
    await table.update(line(bucket, event, place))
    if (mark := mark_of(event)) is not None:
        change = _mark(bucket, event.key, mark, event.at, event.detail.get("sequencer", ""), place)
        with suppress(ConditionFailed):  # a newer one is there
            await table.update(change)
    if event.what == "verified" and event.etag and (algorithm := event.detail.get("algorithm")):
        change = Change((partition(bucket, event.key), identity(event.version_id, event.etag)))
        verified = f"{algorithm}_verified_at"
        change.put(verified, event.at).when_there(algorithm).when_any((verified, "=", None), (verified, "<", event.at))
        with suppress(ConditionFailed):  # the digest is absent, or was verified later
            await table.update(change)


def _mark(bucket: str, key: str, mark: tuple[str, Mark], at: str, sequencer: str, place: int) -> Change:
    """Return the change that keeps a mark of a version, if no newer one is there."""
    change = Change((partition(bucket, key), NOTICED + identity(*mark)))
    change.put("version_id", mark[0]).put("etag", str(mark[1])).put("at", at)
    return change.put("sequencer", sequencer).put("place", place).when_any(("at", "=", None), ("at", "<", at))


async def history(table: Table, bucket: str, key: str) -> list[Event]:
    pk = partition(bucket, key)
    lines = await table.query(pk, HISTORY, HISTORY + "\N{REPLACEMENT CHARACTER}", ConsistentRead=True)
    digests = await table.query(pk, DIGESTS, ConsistentRead=True)
    found = [one for item in digests for one in recorded_lines(bucket, key, item)]
    found += [(number(item, "place") or 0, _event(key, item)) for item in lines]
    found.sort(key=lambda one: (one[0], one[1].at))
    return [event for _, event in found]


def _event(key: str, item: Item) -> Event:
    what: Any = text(item, "what")
    return Event(
        key=key,
        at=text(item, "at") or "",
        what=what,
        version_id=text(item, "version_id"),
        etag=text(item, "etag"),
        size=number(item, "size"),
        detail={name: str(value["S"]) for name, value in item["detail"]["M"].items()},
    )


async def arrived(table: Table, bucket: str, notice: Notice) -> bool:
    pk = partition(bucket, notice.key)
    of_key, of_version = (pk, NOTICE), (pk, NOTICED + identity(notice.version_id, notice.etag or ""))
    for _ in range(_TRIES):
        found = await table.get_many([of_key, of_version], consistent=True)
        newest = latest(found.get(of_key))
        if is_same(notice, newest):
            return True
        older = is_older(notice, newest)
        place = table.place()
        if notice.deleted and notice.version_id:
            mark = notice.version_id, Mark.MARKER
            with suppress(ConditionFailed):  # it is there
                await table.update(_mark(bucket, notice.key, mark, notice.at, notice.sequencer, place))
        changes = [line(bucket, noticed(notice), place)]  # written first, so the newest notice always has its line
        if not notice.deleted and notice.etag is not None:
            changes += _notice_version(
                Change(of_version), notice, noticed_version(found.get(of_version)), 0 if older else place
            )
        if not older:
            standing = Change(of_key).put("sequencer", notice.sequencer).put("deleted", notice.deleted)
            standing.put("at", notice.at).put("version_id", notice.version_id).put("place", place)
            changes.append(standing.when("place", number(found[of_key], "place") if of_key in found else None))
        try:
            for change in changes:
                await table.update(change)
        except ConditionFailed:
            continue  # another notification came in between
        return not older
    raise LedgerError(f"the notifications of {notice.key[:100]!r} come too fast for the ledger table {table.name!r}")


def _notice_version(change: Change, notice: Notice, present: NoticedVersion | None, place: int) -> list[Change]:
    """Return the change that keeps the notification with its version; none if a newer one is there."""
    if present and not present.replaced_by(notice.sequencer, place):
        return []
    change.when("place", present.place if present else None).put("sequencer", notice.sequencer)
    change.put("place", max(place, present.place) if present else place)
    return [change.put("version_id", notice.version_id or NULL).put("etag", notice.etag)]


async def expect(table: Table, bucket: str, expectations: Sequence[Expectation]) -> int:
    names = {(partition(bucket, one.key), manifest(one.algorithm, one.origin)): one for one in expectations}
    stored = await table.get_many(names, consistent=True)

    async def keep(one: Expectation) -> bool:
        name = (partition(bucket, one.key), manifest(one.algorithm, one.origin))
        for _ in range(_TRIES):
            present = stored.get(name)
            if present and (text(present, "digest"), number(present, "size")) == (one.digest, one.size):
                return False
            place = table.place()
            change = Change(name).when("place", number(present, "place") if present else None).put("place", place)
            change.put("algorithm", one.algorithm).put("origin", one.origin).put("digest", one.digest)
            change.put("imported_at", one.imported_at).put("size", one.size)
            await table.update(line(bucket, imported(one), place))
            try:
                await table.update(change)
            except ConditionFailed:
                stored.update(await table.get_many([name], consistent=True))
            else:
                stored.pop(name, None)
                return True
        raise LedgerError(f"the ledger table {table.name!r} changes while it is written: stop what deletes its items")

    return sum(await in_order(expectations, lambda one: one.key, keep))


async def subject(table: Table, bucket: str, key: str) -> KeyRecord | None:
    items = await table.query(partition(bucket, key), STATE, ConsistentRead=True)
    if not items:
        return None
    rows = KeyRows()
    for item in items:
        add(rows, key, item)
    return key_record_of(key, rows)
