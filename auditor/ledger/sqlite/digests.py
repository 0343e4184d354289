"""Digests in the embedded ledger: look them up and add them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from auditor.errors import DigestConflict
from auditor.ledger.base import AUDITOR, S3, Entry, Event
from auditor.ledger.history import bounded, conflicted, fingerprint, recorded, write_detail
from auditor.ledger.matching import NULL, LedgerRow, conflict, contradiction
from auditor.ledger.sqlite.connection import blob, writing
from auditor.ledger.sqlite.schema import ADD_LINE

_PER_QUERY: Final = 400
"""Number of refs of one query. Each takes two variables, and the oldest SQLite allows 999."""

Found = dict[tuple[bytes, str], list[LedgerRow]]


def look_up(connection: sqlite3.Connection, bucket: str, identities: Sequence[tuple[bytes, str]]) -> Found:
    """Return all rows of the wanted keys and etags."""
    digests: dict[tuple[bytes, str, str, int], dict[str, str]] = defaultdict(dict)
    for start in range(0, len(identities), _PER_QUERY):
        part = identities[start : start + _PER_QUERY]
        variables = [one for pair in part for one in pair] + [bucket]
        for key, etag, version, size, algorithm, digest in connection.execute(look_up_query(len(part)), variables):
            digests[key, etag, version, size][algorithm] = digest
    found: Found = defaultdict(list)
    for (key, etag, version, size), values in digests.items():
        found[key, etag].append(LedgerRow(version, etag, size, values))
    return found


def look_up_query(pairs: int) -> str:
    """Return the query for this number of pairs of key and etag. Its variables are the pairs, then the bucket."""
    values = ",".join(["(?,?)"] * pairs)
    # CROSS JOIN fixes the order: SQLite searches the primary key once for each wanted pair.
    return (
        f"WITH wanted(key, etag) AS (VALUES {values}) "  # noqa: S608 - only question marks are put in
        "SELECT d.key, d.etag, d.version_id, d.size, d.algorithm, d.digest FROM wanted w CROSS JOIN digests d "
        "WHERE d.bucket = ? AND d.key = w.key AND d.etag = w.etag"
    )


def record(connection: sqlite3.Connection, entries: Iterable[Entry]) -> list[bool | DigestConflict]:
    """Record all entries in one transaction. Return the result or the conflict of each, in order."""
    with writing(connection):
        return [_record(connection, entry) for entry in entries]


def _record(connection: sqlite3.Connection, entry: Entry) -> bool | DigestConflict:
    identity = (entry.bucket, blob(entry.key), entry.etag, entry.version_id or NULL)
    rows = connection.execute(
        "SELECT algorithm, size, digest, source FROM digests "
        "WHERE bucket = ? AND key = ? AND etag = ? AND version_id = ?",
        identity,
    ).fetchall()
    stored = {algorithm: (digest, source) for algorithm, _, digest, source in rows}
    size = rows[0][1] if rows else entry.size
    if clash := contradiction(entry, size, {name: digest for name, (digest, _) in stored.items()}):
        what, stands = clash
        add_lines(connection, entry.bucket, [conflicted(entry, what, stands)])
        return conflict(entry, what)
    new = [name for name in entry.digests if name not in stored or (stored[name][1] == S3 and entry.source == AUDITOR)]
    if not new:
        return False
    place = add_lines(connection, entry.bucket, [recorded(entry, name) for name in new])
    connection.executemany(
        "INSERT INTO digests (bucket, key, etag, version_id, algorithm, size, digest, hashed_at, source, bytes_read) "
        "VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
        "hashed_at = excluded.hashed_at, source = excluded.source, bytes_read = excluded.bytes_read",
        [
            (*identity, name, entry.size, entry.digests[name], entry.hashed_at, entry.source, entry.bytes_read)
            for name in new
        ],
    )
    connection.execute(
        "INSERT INTO versions (bucket, key, etag, version_id, first_seen, recorded_place) VALUES (?,?,?,?,?,?) "
        "ON CONFLICT DO UPDATE SET first_seen = coalesce(first_seen, excluded.first_seen), "
        "recorded_place = coalesce(recorded_place, excluded.recorded_place)",
        (*identity, entry.hashed_at, place),
    )
    return True


def add_lines(connection: sqlite3.Connection, bucket: str, events: Iterable[Event]) -> int:
    """Append new lines to the history. Return the place of the history's last line."""
    cut = (bounded(event) for event in events)
    connection.executemany(
        ADD_LINE,
        (
            (
                bucket,
                blob(one.key),
                fingerprint(one),
                one.at,
                one.what,
                one.version_id,
                one.etag,
                one.size,
                write_detail(one.detail),
            )
            for one in cut
        ),
    )
    return int(connection.execute("SELECT coalesce(max(place), 0) FROM history").fetchone()[0])
