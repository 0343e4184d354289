"""The history lines of an object key in a DynamoDB ledger.

Verifications are kept in the item of the verified digest; all other lines are items of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from auditor.ledger.base import Entry, Event, Version
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.items import (
    DIGESTS,
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
from auditor.ledger.seals import Line, line_seal


async def add_line(table: Table, bucket: str, event: Event, place: int) -> None:
    """Write an event as a history line that is an item of its own. If the table has an equal line, that line stays
    unchanged.

    The line's seal covers the newest line of the key before it. Two writers at the same time may find the same newest
    line. Then both new lines refer to that line, and both are sound. place: number that orders the writes of a key.
    """
    kept, pk = bounded(event), partition(bucket, event.key)
    after = await _last_seal(table, bucket, event.key)
    change = (
        Change((pk, f"{HISTORY}{_sortable(kept.at)}#{fingerprint(kept).hex()}"))
        .once("at", kept.at)
        .once("what", kept.what)
    )
    change.once("version_id", kept.version_id).once("etag", kept.etag).once("size", kept.size)
    change.once("detail", dict(kept.detail)).once("place", place)
    change.once("after", after).once("seal", line_seal(bucket, kept, after))
    await table.update(change)


def _sortable(at: str) -> str:
    return "".join(letter for letter in at if letter.isascii() and (letter.isalnum() or letter in "-:.+"))[:40]


async def _last_seal(table: Table, bucket: str, key: str) -> str:
    """Return the seal of the key's newest history line, to which the next line refers; "" if there is no line.

    Only lines that are items of their own count.
    """
    items = await table.query(
        partition(bucket, key), RECORDED, LAST_LINE, ConsistentRead=True, ScanIndexForward=False, Limit=1, pages=1
    )
    seals = [line.seal for item in items for line in lines_in(bucket, key, [item])]
    return seals[-1] if seals else ""


async def lines_of(table: Table, bucket: str, key: str) -> list[Line]:
    """Return all history lines of a key, in the order in which they were written."""
    pk = partition(bucket, key)
    items = await table.query(pk, RECORDED, LAST_LINE, ConsistentRead=True)
    return lines_in(bucket, key, items + await table.query(pk, DIGESTS, ConsistentRead=True))


def write_look(event: Event, version: Version, algorithm: str, place: int) -> str:
    """Return a verification of a digest as a JSON text for the digest's item: the place, the time, and the rest. The
    rest is empty if the event equals that of _usual(); else it is version ID, ETag, size and detail, all four.

    place: the verification's number in the order of all writes of the key.
    """
    rest = [event.version_id, event.etag, event.size, dict(event.detail)]
    if event == _usual(event.key, event.at, version, algorithm):
        rest = []
    return json.dumps([place, event.at, rest], separators=(",", ":"))


def _usual(key: str, at: str, version: Version, algorithm: str) -> Event:
    detail = {"algorithm": algorithm, "digest": version.digests[algorithm].digest, "origin": "ledger"}
    identity = {"version_id": version.version_id, "etag": version.etag}
    return Event(key=key, at=at, what="verified", size=version.size, detail=detail, **identity)


def looks_of(bucket: str, item: Item, version: Version, algorithm: str, key: str) -> list[tuple[int, Line]]:
    """Return the verifications in a digest's item as history lines, each with the number that orders the writes of the
    key.

    One seal covers all of them: if it is wrong, all lines are damaged.
    """
    after = text(item, f"{algorithm}_look_from") or ""
    found = []
    for look in item.get(f"{algorithm}_looks", {}).get("L", []):
        place, event = _read_look(str(look["S"]), _usual(key, "", version, algorithm))
        seal = line_seal(bucket, event, after)
        found.append((place, Line(event, after, seal)))
        after = seal
    if found and after != text(item, f"{algorithm}_look_seal"):
        found = [(place, replace(line, seal="")) for place, line in found]
    return found


def look_time(look: str) -> str:
    """Return the time of a verification from its text (write_look), in characters that a sort key may have."""
    return _sortable(str(json.loads(look)[1]))


def _read_look(look: str, usual: Event) -> tuple[int, Event]:
    """Return place and event of a verification from its text (write_look).

    usual: an event with the fields that the text leaves out. A damaged text becomes the event's detail.
    """
    try:
        place, at, rest = json.loads(look)
        version_id, etag, size, detail = rest or (usual.version_id, usual.etag, usual.size, usual.detail)
        return int(place), replace(usual, at=str(at), version_id=version_id, etag=etag, size=size, detail=dict(detail))
    except (ValueError, TypeError):
        return 0, replace(usual, detail={"damaged": look})


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


def recorded_lines(bucket: str, key: str, item: Item) -> list[tuple[int, Line]]:
    """Return the "recorded" lines in an item of the history, each with its place in the key's order of writes."""
    version, _ = evidence(bucket, key, item)
    lines = []
    for algorithm, known in version.digests.items():
        event = recorded(entry_of(bucket, key, version, algorithm), algorithm)
        seal = "" if known.damaged else line_seal(bucket, event, "")
        lines.append((number(item, f"{algorithm}_place") or 0, Line(event, "", seal)))
    return lines


def history_line(key: str, item: Item) -> Line:
    """Return the history line in an item that holds one line and nothing else."""
    what: Any = text(item, "what")
    event = Event(
        key=key,
        at=text(item, "at") or "",
        what=what,
        version_id=text(item, "version_id"),
        etag=text(item, "etag"),
        size=number(item, "size"),
        detail={name: str(value["S"]) for name, value in item["detail"]["M"].items()},
    )
    return Line(event, text(item, "after") or "", text(item, "seal") or "")


def lines_in(bucket: str, key: str, items: Iterable[Item]) -> list[Line]:
    """Return all history lines in these items of a key, each once, in the order in which they were written.

    items: of any kind; items without history lines are skipped.
    """
    found: list[tuple[int, Line]] = []
    for item in items:
        sk = item["sk"]["S"]
        if sk.startswith(HISTORY) and "what" in item:
            found.append((number(item, "place") or 0, history_line(key, item)))
        elif sk.startswith(RECORDED):
            found += recorded_lines(bucket, key, item)
        elif sk.startswith(HISTORY) or sk >= DIGESTS:
            version, _ = evidence(bucket, key, item)
            for algorithm in version.digests:
                found += looks_of(bucket, item, version, algorithm, key)
    found.sort(key=lambda one: (one[0], one[1].event.at))
    once: dict[bytes, Line] = {}
    for _, line in found:
        once.setdefault(fingerprint(line.event), line)
    return list(once.values())
