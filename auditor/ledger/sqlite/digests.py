"""Look up and record digests in a SQLite ledger."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

from auditor.errors import DigestConflict
from auditor.ledger.base import AUDITOR, S3, Entry, Event, Known, Version, What
from auditor.ledger.history import bounded, conflicted, fingerprint, read_detail, recorded, write_detail
from auditor.ledger.key_record import source_of
from auditor.ledger.matching import NULL, LedgerRow, conflict, contradiction, healable_row
from auditor.ledger.seals import healed, judged_line, line_seal, row_seal, version_of_line
from auditor.ledger.sqlite.connection import any_text, as_number, as_text, blob, writing

_PER_QUERY: Final = 400
"""Number of object versions in one query. Each takes two variables, and the oldest SQLite allows 999 variables
in all."""

COLUMNS: Final = (
    "d.key, d.etag, d.version_id, d.size, d.algorithm, d.digest, d.hashed_at, d.source, d.bytes_read, d.verified_at, "
    "d.seal"
)
"""The columns for the fields of a DigestRow after `bucket`, in order."""

_FROM_KEY: Final = f"SELECT {COLUMNS} FROM digests d WHERE bucket = ? AND key >= ? ORDER BY key LIMIT ?"  # noqa: S608

_HAS_LINE: Final = "SELECT 1 FROM history WHERE bucket = ? AND key = ? AND line = ?"
_ADD_LINE: Final = (
    "INSERT INTO history (bucket, key, line, at, what, version_id, etag, size, detail, seal) "
    "VALUES (?,?,?,?,?,?,?,?,?,?)"
)

Found = dict[tuple[bytes, str], list[LedgerRow]]


class DigestRow(NamedTuple):
    """A row of the table `digests`: one digest of one object version, with the values as they are stored.

    SQLite keeps a value of any type in any column, so a damaged row may have other types. `algorithm_name`, `known` and
    `version()` have the types of an undamaged row.
    """

    bucket: str
    key: bytes
    etag: str
    version_id: str
    size: int
    algorithm: str
    digest: str
    hashed_at: str
    source: str
    bytes_read: int
    verified_at: str | None
    seal: str

    @property
    def algorithm_name(self) -> str:
        return as_text(self.algorithm) or ""

    @property
    def known(self) -> Known:
        return Known(
            digest=as_text(self.digest) or "",
            source=source_of(as_text(self.source)),
            recorded_at=as_text(self.hashed_at) or "",
            verified_at=as_text(self.verified_at),
            bytes_read=as_number(self.bytes_read) or 0,
            damaged=self.damaged,
        )

    @property
    def true_seal(self) -> str:
        """The seal that the row must have. If the row's `seal` differs, the row is damaged."""
        return row_seal(self.bucket, any_text(self.key), *self[2:-1])

    @property
    def damaged(self) -> bool:
        return self.seal != self.true_seal

    def version(self) -> Version:
        """Return the object version that this row belongs to. Its `digests` has the one digest of the row."""
        version_id, etag, size = as_text(self.version_id) or "", as_text(self.etag) or "", as_number(self.size) or 0
        return Version.of(version_id, etag, size, {self.algorithm_name: self.known})


def look_up(connection: sqlite3.Connection, bucket: str, identities: Sequence[tuple[bytes, str]]) -> Found:
    """Return the digests of these pairs of key and ETag, by pair."""
    found: Found = defaultdict(list)
    for start in range(0, len(identities), _PER_QUERY):
        part = identities[start : start + _PER_QUERY]
        variables = [one for pair in part for one in pair] + [bucket]
        _add(connection, found, bucket, connection.execute(look_up_query(len(part)), variables).fetchall())
    return found


class RowPage(Struct, frozen=True):
    """The digests of all keys from `first` on and before `end`, by pair of key and ETag.

    end: None if the bucket has no more rows. count: number of rows that were read, damaged ones too.
    """

    first: bytes
    end: bytes | None
    rows: Found
    count: int

    def has(self, key: bytes) -> bool:
        return self.first <= key and (self.end is None or key < self.end)


def read_page(connection: sqlite3.Connection, bucket: str, first: bytes, limit: int) -> RowPage:
    """Read some `limit` rows of a bucket, from the key `first` on. All rows of a key are in one page."""
    rows = connection.execute(_FROM_KEY, (bucket, first, limit)).fetchall()
    end = None
    if len(rows) == limit:
        end = last = rows[-1][0]
        rows = [row for row in rows if row[0] != last]
        if not rows:  # one key has more rows than the page
            rows = _select(connection, bucket, "key = ?", last)
            end = last + b"\0"
    found: Found = defaultdict(list)
    _add(connection, found, bucket, rows)
    return RowPage(first, end, dict(found), len(rows))


def _add(connection: sqlite3.Connection, found: Found, bucket: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add the digests of these rows to `found`: those of damaged rows by the copies in the histories, if there are any.
    The rows of one object version come one after the other.
    """
    damaged: set[bytes] = set()
    before: tuple[Any, ...] = ()
    digests: dict[str, str] = {}
    for row in rows:  # a DigestRow of each would take as long as all the rest
        key, etag, version_id, size, algorithm, digest, *_, seal = row
        if seal != row_seal(bucket, any_text(key), *row[1:-1]):
            damaged.add(key)
            continue
        version = (key, etag, version_id, size)
        if version != before:
            before, digests = version, {}
            found[key, etag].append(LedgerRow(version_id, etag, size, digests))
        digests[algorithm] = digest
    for key in damaged:
        for _, healable in _healed(connection, bucket, key):
            found[key, healable.etag].append(healable_row(healable))


def _healed(connection: sqlite3.Connection, bucket: str, key: bytes) -> list[tuple[DigestRow, Version]]:
    """Return each damaged row of a key that its history stands for, and the digest that it must have, as a version."""
    rows = rows_where(connection, bucket, "key = ?", key)
    found = healed([row.version() for row in rows], lines_of(connection, bucket, key))
    return [(rows[number], version) for number, version in found]


def _select(connection: sqlite3.Connection, bucket: str, where: str, *variables: object) -> list[tuple[Any, ...]]:
    query = f"SELECT {COLUMNS} FROM digests d WHERE bucket = ? AND {where}"  # noqa: S608 - only question marks are put in
    return connection.execute(query, (bucket, *variables)).fetchall()


def rows_where(connection: sqlite3.Connection, bucket: str, where: str, *variables: object) -> list[DigestRow]:
    """Return the rows of a bucket for which a condition in SQL holds. variables: those of its question marks."""
    return [DigestRow(bucket, *values) for values in _select(connection, bucket, where, *variables)]


def _row_of(bucket: str, key: bytes, version: Version) -> DigestRow:
    ((algorithm, one),) = version.digests.items()
    values = (one.digest, one.recorded_at, one.source, one.bytes_read, one.verified_at)
    return DigestRow(bucket, key, version.etag, version.version_id, version.size, algorithm, *values, "")


def heal(connection: sqlite3.Connection, bucket: str, keys: Iterable[str]) -> int:
    """Heal the rows of these keys in one transaction, as DigestStore.heal() describes."""
    with writing(connection):
        return sum(_heal(connection, bucket, blob(key)) for key in keys)


def _heal(connection: sqlite3.Connection, bucket: str, key: bytes) -> int:
    found = _healed(connection, bucket, key)
    for damaged, version in found:
        connection.execute(
            # By bytes: the value of a damaged column may have another type, or be no UTF-8.
            "DELETE FROM digests WHERE bucket = ? AND key = ? AND CAST(etag AS BLOB) = CAST(? AS BLOB) AND "
            "CAST(version_id AS BLOB) = CAST(? AS BLOB) AND CAST(algorithm AS BLOB) = CAST(? AS BLOB)",
            (bucket, key, damaged.etag, damaged.version_id, damaged.algorithm),
        )
        write_row(connection, _row_of(bucket, key, version))
    return len(found)


def look_up_query(pairs: int) -> str:
    """Return the SQL query for this number of pairs of key and ETag. The query's variables are the pairs, then the
    bucket.
    """
    values = ",".join(["(?,?)"] * pairs)
    # CROSS JOIN fixes the order: SQLite searches the primary key once for each wanted pair.
    return (
        f"WITH wanted(key, etag) AS (VALUES {values}) "  # noqa: S608 - only question marks are put in
        f"SELECT {COLUMNS} FROM wanted w CROSS JOIN digests d "
        "WHERE d.bucket = ? AND d.key = w.key AND d.etag = w.etag"
    )


def record(connection: sqlite3.Connection, entries: Iterable[Entry]) -> list[bool | DigestConflict]:
    """Record all entries in one transaction. Return the answers that record_many() describes, in order."""
    with writing(connection):
        return [_record(connection, entry) for entry in entries]


def _record(connection: sqlite3.Connection, entry: Entry) -> bool | DigestConflict:
    identity = (entry.bucket, blob(entry.key), entry.etag, entry.version_id or NULL)
    rows = rows_of(connection, *identity)
    if any(one.damaged for one in rows) and _heal(connection, *identity[:2]):
        rows = rows_of(connection, *identity)
    size = next((one.version().size for one in rows), entry.size)
    if clash := contradiction(entry, size, {one.algorithm: one.known.digest for one in rows}):
        add_lines(connection, entry.bucket, [conflicted(entry, *clash)])
        return conflict(entry, clash[0])
    stored = {one.algorithm: one for one in rows}
    new = [
        name for name in entry.digests if name not in stored or (stored[name].source == S3 and entry.source == AUDITOR)
    ]
    if not new:
        return False
    lines = {name: recorded(entry, name) for name in new}
    place = add_lines(connection, entry.bucket, lines.values())
    for name, line in lines.items():
        verified_at = stored[name].verified_at if name in stored else None
        write_row(connection, _row_of(entry.bucket, identity[1], version_of_line(line, verified_at)))
    connection.execute(
        "INSERT INTO versions (bucket, key, etag, version_id, first_seen, recorded_place) VALUES (?,?,?,?,?,?) "
        "ON CONFLICT DO UPDATE SET first_seen = coalesce(first_seen, excluded.first_seen), "
        "recorded_place = coalesce(recorded_place, excluded.recorded_place)",
        (*identity, entry.hashed_at, place),
    )
    return True


def rows_of(
    connection: sqlite3.Connection, bucket: str, key: bytes, etag: str | None, version_id: str
) -> list[DigestRow]:
    """Return the rows of one object version, one for each algorithm; [] if the ETag is None."""
    return rows_where(connection, bucket, "key = ? AND etag = ? AND version_id = ?", key, etag, version_id)


def write_row(connection: sqlite3.Connection, row: DigestRow) -> None:
    """Write a row with its seal. If the row exists, replace all but its identity, digest and size."""
    connection.execute(
        "INSERT INTO digests (bucket, key, etag, version_id, size, algorithm, digest, hashed_at, source, bytes_read, "
        "verified_at, seal) VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET hashed_at = excluded.hashed_at, "
        "source = excluded.source, bytes_read = excluded.bytes_read, verified_at = excluded.verified_at, "
        "seal = excluded.seal",
        (*row[:-1], row.true_seal),
    )


def lines_of(connection: sqlite3.Connection, bucket: str, key: bytes) -> list[Event]:
    """Return the history lines of a key, in the order in which they were written."""
    rows = connection.execute(
        "SELECT at, what, version_id, etag, size, detail, seal FROM history "
        "WHERE bucket = ? AND key = ? ORDER BY place",
        (bucket, key),
    )
    lines = []
    for at, what, version_id, etag, size, detail, seal in rows:
        event = Event(
            key=any_text(key),
            at=as_text(at) or "",
            what=cast(What, as_text(what)),
            version_id=as_text(version_id),
            etag=as_text(etag),
            size=as_number(size),
            detail=read_detail(as_text(detail) or ""),
        )
        lines.append(judged_line(as_text(bucket) or "", event, as_text(seal)))
    return lines


def add_lines(connection: sqlite3.Connection, bucket: str, events: Iterable[Event]) -> int:
    """Append events to their keys' histories as lines with seals. Events that a history already has are left out.

    Return the serial number of the newest line in the table, by which writes are ordered.
    """
    for event in map(bounded, events):
        identity = (bucket, blob(event.key), fingerprint(event))
        if connection.execute(_HAS_LINE, identity).fetchone():
            continue
        detail, seal = write_detail(event.detail), line_seal(bucket, event)
        row = (*identity, event.at, event.what, event.version_id, event.etag, event.size, detail, seal)
        connection.execute(_ADD_LINE, row)
    return int(connection.execute("SELECT coalesce(max(place), 0) FROM history").fetchone()[0])
