"""The tables of a SQLite ledger, and their upgrade from schema versions 1 and 2."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from auditor.errors import LedgerError
from auditor.ledger.base import Entry
from auditor.ledger.history import fingerprint, recorded, write_detail

SCHEMA_VERSION: Final = 3

# Keys are blobs: SQLite compares them byte by byte, as S3's listing does, and a NUL does not end them.
_DIGESTS: Final = """
CREATE TABLE digests (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    etag TEXT NOT NULL,
    version_id TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    hashed_at TEXT NOT NULL,
    PRIMARY KEY (bucket, key, etag, version_id, algorithm)
) WITHOUT ROWID
"""
_FROM_1: Final = (
    "ALTER TABLE digests ADD COLUMN source TEXT NOT NULL DEFAULT 'auditor'",
    "ALTER TABLE digests ADD COLUMN verified_at TEXT",
    "ALTER TABLE digests ADD COLUMN bytes_read INTEGER NOT NULL DEFAULT 0",
    """
CREATE TABLE versions (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    etag TEXT NOT NULL,
    version_id TEXT NOT NULL,
    first_seen TEXT,
    recorded_place INTEGER,
    told_place INTEGER,
    sequencer TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (bucket, key, etag, version_id)
) WITHOUT ROWID
""",
    """
CREATE TABLE history (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    line BLOB NOT NULL,
    at TEXT NOT NULL,
    what TEXT NOT NULL,
    version_id TEXT,
    etag TEXT,
    size INTEGER,
    detail TEXT NOT NULL,
    UNIQUE (bucket, key, line)
)
""",
    # Without this trigger, INSERT OR REPLACE would replace a line that is there.
    """
CREATE TRIGGER history_holds_each_line_once BEFORE INSERT ON history
WHEN EXISTS (SELECT 1 FROM history WHERE place = NEW.place)
    OR EXISTS (SELECT 1 FROM history WHERE bucket = NEW.bucket AND key = NEW.key AND line = NEW.line)
BEGIN SELECT RAISE(IGNORE); END
""",
    """
CREATE TRIGGER history_is_never_changed BEFORE UPDATE ON history
BEGIN SELECT RAISE(ABORT, 'the history is only added to'); END
""",
    """
CREATE TRIGGER history_is_never_deleted BEFORE DELETE ON history
BEGIN SELECT RAISE(ABORT, 'the history is only added to'); END
""",
    """
CREATE TABLE notices (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    sequencer TEXT NOT NULL,
    deleted INTEGER NOT NULL,
    at TEXT NOT NULL,
    version_id TEXT,
    PRIMARY KEY (bucket, key)
) WITHOUT ROWID
""",
    """
CREATE TABLE expectations (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    algorithm TEXT NOT NULL,
    origin TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER,
    imported_at TEXT NOT NULL,
    PRIMARY KEY (bucket, key, algorithm, origin)
) WITHOUT ROWID
""",
    """
CREATE TABLE leases (
    work TEXT PRIMARY KEY,
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    owner TEXT,
    until REAL NOT NULL,
    fence INTEGER NOT NULL,
    hops INTEGER NOT NULL,
    checkpoint TEXT
) WITHOUT ROWID
""",
)
_FROM_2: Final = (
    # NULL in rows and lines of earlier versions: they are unsealed.
    "ALTER TABLE digests ADD COLUMN seal TEXT",
    "ALTER TABLE history ADD COLUMN seal TEXT",
)
ADD_LINE: Final = (
    "INSERT INTO history (bucket, key, line, at, what, version_id, etag, size, detail, seal) "
    "VALUES (?,?,?,?,?,?,?,?,?,?)"
)

_Line = tuple[str, bytes, bytes, str, str, str | None, str | None, int | None, str, None]


def set_up(connection: sqlite3.Connection, path: str) -> None:
    """Create the tables in an empty file, or upgrade the tables of an earlier release.

    If several processes open the file at once, one of them does this.
    """
    version = _version(connection)
    if version == SCHEMA_VERSION:
        return
    try:
        _upgrade(connection, path)
    except sqlite3.OperationalError as error:
        if version and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY:
            raise LedgerError(
                f"the ledger sqlite:{path} has schema {version}, which this auditor upgrades first, and cannot be"
                " written: copy it to a place where it can, with its -wal if there is one"
            ) from error
        raise


def _upgrade(connection: sqlite3.Connection, path: str) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        version = _version(connection)  # read again: from now on no other process can make the tables
        if version > SCHEMA_VERSION:
            raise LedgerError(
                f"--ledger sqlite:{path} was made by a newer auditor (schema {version}): upgrade this one"
            )
        if version == SCHEMA_VERSION:
            return
        if version == 0:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise LedgerError(f"--ledger sqlite:{path} is another program's database: name another file")
            connection.execute(_DIGESTS)
        for statement in (*(_FROM_1 if version < 2 else ()), *_FROM_2):
            connection.execute(statement)
        if version < 2:
            _add_history_of_1(connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _add_history_of_1(connection: sqlite3.Connection) -> None:
    """Write the histories and the order of versions for a ledger of schema 1, which had neither.

    In such a ledger, the auditor had computed every digest from the object's bytes.
    """
    connection.execute("UPDATE digests SET bytes_read = size")
    connection.executemany(ADD_LINE, _lines(connection))
    connection.execute(
        "INSERT INTO versions (bucket, key, etag, version_id, first_seen, recorded_place) "
        "SELECT d.bucket, d.key, d.etag, d.version_id, min(d.hashed_at), min(h.place) FROM digests d JOIN history h "
        "ON h.bucket = d.bucket AND h.key = d.key AND h.etag = d.etag AND h.version_id = d.version_id "
        "GROUP BY d.bucket, d.key, d.etag, d.version_id"
    )


def _lines(connection: sqlite3.Connection) -> Iterator[_Line]:
    rows = connection.execute(
        "SELECT bucket, key, version_id, etag, size, algorithm, digest, hashed_at FROM digests ORDER BY hashed_at"
    )
    for bucket, key, version_id, etag, size, algorithm, digest, hashed_at in rows:
        entry = Entry(
            bucket=bucket,
            key=key.decode("utf-8", "surrogatepass"),
            version_id=version_id,
            etag=etag,
            size=size,
            digests={algorithm: digest},
            hashed_at=hashed_at,
            bytes_read=size,
        )
        event = recorded(entry, algorithm)
        detail = write_detail(event.detail)
        yield (bucket, key, fingerprint(event), hashed_at, event.what, version_id, etag, size, detail, None)


def _version(connection: sqlite3.Connection) -> int:
    with closing(connection.execute("PRAGMA user_version")) as cursor:
        return int(cursor.fetchone()[0])
