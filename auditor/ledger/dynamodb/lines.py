"""The history lines of an object key in a DynamoDB ledger: each is an item of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from auditor.ledger.base import DAMAGED, SOUND, Entry, Event, HistoryEntry, Version
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.items import (
    HISTORY,
    LAST_LINE,
    RECORDED,
    Item,
    evidence,
    number,
    partition,
    text,
)
from auditor.ledger.dynamodb.table import Table
from auditor.ledger.history import bounded, fingerprint, recorded
from auditor.ledger.seals import line_of, line_seal


async def add_line(table: Table, bucket: str, event: Event, place: int) -> None:
    """Write an event as a history line. If the table has an equal line, that line stays unchanged.

    place: number that orders the writes of a key.
    """
    kept = bounded(event)
    change = Change((partition(bucket, event.key), f"{HISTORY}{_sortable(kept.at)}#{fingerprint(kept).hex()}"))
    change.once("at", kept.at).once("what", kept.what)
    change.once("version_id", kept.version_id).once("etag", kept.etag).once("size", kept.size)
    change.once("detail", dict(kept.detail)).once("place", place).once("seal", line_seal(bucket, kept))
    await table.update(change)


def _sortable(at: str) -> str:
    return "".join(letter for letter in at if letter.isascii() and (letter.isalnum() or letter in "-:.+"))[:40]


async def lines_of(table: Table, bucket: str, key: str) -> list[HistoryEntry]:
    """Return all history lines of a key, in the order in which they were written."""
    return lines_in(bucket, key, await table.query(partition(bucket, key), RECORDED, LAST_LINE, ConsistentRead=True))


def entry_of(bucket: str, key: str, version: Version, algorithm: str) -> Entry:
    """Return the entry that records one digest of an object version, made from the ledger's own data."""
    known = version.digests[algorithm]
    return Entry(
        bucket=bucket,
        key=key,
        version_id=version.version_id,
        etag=version.etag,
        size=version.size,
        digests={algorithm: known.digest},
        hashed_at=known.recorded_at,
        source=known.source,
        bytes_read=known.bytes_read,
    )


def recorded_lines(bucket: str, key: str, item: Item) -> list[tuple[int, HistoryEntry]]:
    """Return the "recorded" lines in an item of the history, each with its place in the key's order of writes."""
    version, _ = evidence(bucket, key, item)
    lines = []
    for algorithm, known in version.digests.items():
        event = recorded(entry_of(bucket, key, version, algorithm), algorithm)
        seal = DAMAGED if known.damaged else SOUND
        lines.append((number(item, f"{algorithm}_place") or 0, HistoryEntry(event, seal)))
    return lines


def history_line(bucket: str, key: str, item: Item) -> HistoryEntry:
    """Return the history line in an item that holds one line and nothing else."""
    what: Any = text(item, "what")
    event = Event(
        key=key,
        at=text(item, "at") or "",
        what=what,
        version_id=text(item, "version_id"),
        etag=text(item, "etag"),
        size=number(item, "size"),
        detail={name: str(value.get("S")) for name, value in item.get("detail", {}).get("M", {}).items()},
    )
    return line_of(bucket, event, text(item, "seal"))


def lines_in(bucket: str, key: str, items: Iterable[Item]) -> list[HistoryEntry]:
    """Return all history lines in these items of a key, in the order in which they were written.

    items: of any kind; items without history lines are skipped.
    """
    found: list[tuple[int, HistoryEntry]] = []
    for item in items:
        sk = item["sk"]["S"]
        if sk.startswith(HISTORY):
            found.append((number(item, "place") or 0, history_line(bucket, key, item)))
        elif sk.startswith(RECORDED):
            found += recorded_lines(bucket, key, item)
    return [line for _, line in sorted(found, key=lambda one: (one[0], one[1].event.at))]
