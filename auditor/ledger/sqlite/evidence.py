"""Read and write the histories and the records of object keys in a SQLite ledger."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from auditor.ledger.base import Checked, Event, Expectation, KeyRecord, Known, Notice, Version
from auditor.ledger.history import imported, noticed
from auditor.ledger.key_record import MARKS, KeyRows, Latest, Mark, NoticedVersion, is_older, is_same, mark_of
from auditor.ledger.matching import NULL
from auditor.ledger.seals import check_key, mend
from auditor.ledger.sqlite.connection import any_text, as_number, as_text, blob, text, writing
from auditor.ledger.sqlite.digests import add_lines, lines_of, rows_of, rows_where, write_row

PAGE: Final = 200
"""Number of keys that one query reads."""
_AFTER_ALL: Final = b"\xff"
"""A byte that UTF-8 never has. A prefix followed by this byte sorts after every key that begins with the prefix."""


def note(connection: sqlite3.Connection, bucket: str, events: Sequence[Event]) -> None:
    with writing(connection):
        place = add_lines(connection, bucket, events)
        for event in events:
            if (mark := mark_of(event)) is not None:
                _mark(connection, bucket, event, mark, place)
            if event.what == "verified":
                _verified(connection, bucket, event)


def _verified(connection: sqlite3.Connection, bucket: str, event: Event) -> None:
    """Write the time of a "verified" event into the row of the verified digest, and renew the row's seal.

    A damaged row stays unchanged, because a new seal would hide the damage.
    """
    for row in rows_of(connection, bucket, blob(event.key), event.etag, event.version_id or NULL):
        if row.algorithm != event.detail.get("algorithm") or (as_text(row.verified_at) or "") >= event.at:
            continue
        if not row.damaged:
            write_row(connection, row._replace(verified_at=event.at))


def checked(
    connection: sqlite3.Connection, after: tuple[str, bytes] | None
) -> tuple[list[Checked], tuple[str, bytes]] | None:
    """Check the next keys of the ledger for damage.

    Return the results, and (bucket, key) of the last checked key; None if no key is left. after: the (bucket, key) that
    the call before returned; None to begin.
    """
    where, variables = ("", ()) if after is None else ("WHERE (bucket, key) > (?, ?)", after)
    branch = f"SELECT * FROM (SELECT DISTINCT bucket, key FROM {{}} {where} ORDER BY bucket, key LIMIT {PAGE})"  # noqa: S608
    query = f"{branch.format('digests')} UNION {branch.format('history')} ORDER BY bucket, key LIMIT {PAGE}"
    keys = connection.execute(query, (*variables, *variables)).fetchall()
    if not keys:
        return None
    found: list[Checked] = []
    for bucket, key in keys:
        rows = [row.version() for row in rows_where(connection, bucket, "key = ?", key)]
        found += check_key(as_text(bucket) or "", any_text(key), rows, lines_of(connection, bucket, key))
    return found, keys[-1]


def histories(
    connection: sqlite3.Connection, bucket: str, prefix: str, after: str | None
) -> tuple[list[Event], str] | None:
    """Return all events of the next keys that begin with `prefix`, and the last of these keys; None if no key is left.

    after: the key that the call before returned; None to begin.
    """
    first = blob(prefix) if after is None else blob(after) + b"\0"
    keys = connection.execute(
        "SELECT DISTINCT key FROM history WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?",
        (bucket, first, blob(prefix) + _AFTER_ALL, PAGE),
    ).fetchall()
    if not keys:
        return None
    return [one for (key,) in keys for one in lines_of(connection, bucket, key)], text(keys[-1][0])


def arrived(connection: sqlite3.Connection, bucket: str, notice: Notice) -> bool:
    with writing(connection):
        row = connection.execute(
            "SELECT sequencer, deleted, at, version_id FROM notices WHERE bucket = ? AND key = ?",
            (bucket, blob(notice.key)),
        ).fetchone()
        latest = _latest(*row) if row else None
        if is_same(notice, latest):
            return True
        event = noticed(notice)
        place = add_lines(connection, bucket, [event])
        if notice.deleted and notice.version_id:
            _mark(connection, bucket, event, (notice.version_id, Mark.MARKER), place)
        older = is_older(notice, latest)
        _notice_version(connection, bucket, notice, 0 if older else place)
        if not older:
            connection.execute(
                "INSERT OR REPLACE INTO notices (bucket, key, sequencer, deleted, at, version_id) VALUES (?,?,?,?,?,?)",
                (bucket, blob(notice.key), notice.sequencer, notice.deleted, notice.at, notice.version_id),
            )
    return not older


def _latest(sequencer: object, deleted: object, at: object, version_id: object) -> Latest:
    """Return a row of the table `notices`."""
    return Latest(as_text(sequencer) or "", bool(deleted), as_text(at) or "", as_text(version_id))


def _mark(connection: sqlite3.Connection, bucket: str, event: Event, mark: tuple[str, Mark], place: int) -> None:
    """Write the row of a Mark (such as "retired"), unless the row has the same or a later time.

    event: gives the Mark's time and sequencer. mark: version ID and Mark. place: serial number of the newest history
    line, by which writes are ordered.
    """
    sequencer = event.detail.get("sequencer", "")
    connection.execute(
        "INSERT INTO versions (bucket, key, etag, version_id, first_seen, told_place, sequencer) VALUES (?,?,?,?,?,?,?)"
        " ON CONFLICT DO UPDATE SET first_seen = excluded.first_seen, told_place = excluded.told_place,"
        " sequencer = excluded.sequencer WHERE excluded.first_seen > first_seen",
        (bucket, blob(event.key), mark[1], mark[0], event.at, place, sequencer),
    )


def _notice_version(connection: sqlite3.Connection, bucket: str, notice: Notice, place: int) -> None:
    """Write a notification into the row of its object version, unless the row has a newer notification.

    place: serial number of the newest history line, by which writes are ordered; 0 if the key has a newer notification.
    """
    if notice.deleted or notice.etag is None:
        return
    identity = (bucket, blob(notice.key), notice.etag, notice.version_id or NULL)
    row = connection.execute(
        "SELECT sequencer, told_place FROM versions WHERE bucket = ? AND key = ? AND etag = ? AND version_id = ?",
        identity,
    ).fetchone()
    if row and row[1] is not None:
        told = NoticedVersion(as_text(row[0]) or "", as_number(row[1]) or 0)
        if not told.replaced_by(notice.sequencer, place):
            return
        place = max(place, told.place)
    connection.execute(
        "INSERT INTO versions (bucket, key, etag, version_id, told_place, sequencer) VALUES (?,?,?,?,?,?) "
        "ON CONFLICT DO UPDATE SET told_place = excluded.told_place, sequencer = excluded.sequencer",
        (*identity, place, notice.sequencer),
    )


def expect(connection: sqlite3.Connection, bucket: str, expectations: Sequence[Expectation]) -> int:
    changed = 0
    with writing(connection):
        for one in expectations:
            identity = (bucket, blob(one.key), one.algorithm, one.origin)
            row = connection.execute(
                "SELECT digest, size FROM expectations WHERE bucket = ? AND key = ? AND algorithm = ? AND origin = ?",
                identity,
            ).fetchone()
            if row == (one.digest, one.size):
                continue
            connection.execute(
                "INSERT OR REPLACE INTO expectations (bucket, key, algorithm, origin, digest, size, imported_at) "
                "VALUES (?,?,?,?,?,?,?)",
                (*identity, one.digest, one.size, one.imported_at),
            )
            add_lines(connection, bucket, [imported(one)])
            changed += 1
    return changed


def subject(connection: sqlite3.Connection, bucket: str, key: str) -> KeyRecord | None:
    found = _rows(connection, bucket, blob(key), blob(key))
    return found[blob(key)].record(key) if found else None


def page(connection: sqlite3.Connection, bucket: str, prefix: str, after: str) -> list[KeyRecord]:
    """Return the records of the next keys that begin with `prefix`, in key order; [] if no key is left.

    after: the last key of the page before; "" to begin.
    """
    first = max(blob(prefix), blob(after) + b"\0" if after else b"")
    end = blob(prefix) + _AFTER_ALL
    branch = (
        "SELECT key FROM (SELECT DISTINCT key FROM {} WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?)"
    )
    query = " UNION ".join(branch.format(table) for table in ("versions", "notices", "expectations"))
    rows = connection.execute(f"{query} ORDER BY key LIMIT ?", [*(bucket, first, end, PAGE) * 3, PAGE])
    keys = [key for (key,) in rows]
    if not keys:
        return []
    found = _rows(connection, bucket, keys[0], keys[-1])
    return [found[key].record(text(key)) for key in keys]


def _rows(connection: sqlite3.Connection, bucket: str, first: bytes, last: bytes) -> dict[bytes, KeyRows]:
    """Return the ledger's rows of all keys from `first` to `last`, both included, by key."""
    found: dict[bytes, KeyRows] = defaultdict(KeyRows)
    wanted = (bucket, first, last)
    known: dict[tuple[bytes, str, str, int], dict[str, Known]] = defaultdict(dict)
    for row in rows_where(connection, bucket, "key BETWEEN ? AND ?", first, last):
        one = row.version()
        known[row.key, one.etag, one.version_id, one.size] |= one.digests
    seen: dict[tuple[bytes, str, str], tuple[str | None, int | None]] = {}
    for key, etag, version, first_seen, recorded_place, told_place, sequencer in connection.execute(
        "SELECT key, etag, version_id, first_seen, recorded_place, told_place, sequencer "
        "FROM versions WHERE bucket = ? AND key BETWEEN ? AND ?",
        wanted,
    ):
        name, rows = (as_text(version) or "", as_text(etag) or ""), found[key]
        seen[key, *name] = (as_text(first_seen), as_number(recorded_place))
        if (told := as_number(told_place)) is not None:
            at = (as_text(first_seen) or "") if etag in MARKS else ""
            rows.noticed[name] = NoticedVersion(as_text(sequencer) or "", told, at)
    for (key, etag, version, size), digests in known.items():
        first_seen, place = seen.get((key, version, etag), (None, None))
        found[key].versions.append((Version.of(version, etag, size, digests, first_seen), place or 0))
    for key, rows in found.items():
        if any(one.damaged for version, _ in rows.versions for one in version.digests.values()):
            mend(rows, lines_of(connection, bucket, key))
    for key, sequencer, deleted, at, version in connection.execute(
        "SELECT key, sequencer, deleted, at, version_id FROM notices WHERE bucket = ? AND key BETWEEN ? AND ?", wanted
    ):
        found[key].latest = _latest(sequencer, deleted, at, version)
    for key, size, *values in connection.execute(
        "SELECT key, size, algorithm, digest, origin, imported_at FROM expectations "
        "WHERE bucket = ? AND key BETWEEN ? AND ?",
        wanted,
    ):
        algorithm, digest, origin, at = (as_text(value) or "" for value in values)
        found[key].expectations.append(Expectation(any_text(key), algorithm, digest, origin, at, as_number(size)))
    return dict(found)
