"""The history lines of an object key in a DynamoDB ledger: each is an item of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from auditor.ledger.base import Event
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.items import (
    HISTORY,
    Item,
    number,
    partition,
    text,
)
from auditor.ledger.dynamodb.table import Table
from auditor.ledger.history import bounded, fingerprint
from auditor.ledger.seals import judged_line, line_seal


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


async def lines_of(table: Table, bucket: str, key: str) -> list[Event]:
    """Return all history lines of a key, in the order in which they were written."""
    return lines_in(bucket, key, await table.query(partition(bucket, key), HISTORY))


def history_line(bucket: str, key: str, item: Item) -> Event:
    """Return the history line in an item."""
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
    return judged_line(bucket, event, text(item, "seal"))


def lines_in(bucket: str, key: str, items: Iterable[Item]) -> list[Event]:
    """Return all history lines in these items of a key, in the order in which they were written.

    items: of any kind; items without history lines are skipped.
    """
    found = [item for item in items if item["sk"]["S"].startswith(HISTORY)]
    found.sort(key=lambda item: (number(item, "place") or 0, text(item, "at") or ""))
    return [history_line(bucket, key, item) for item in found]
