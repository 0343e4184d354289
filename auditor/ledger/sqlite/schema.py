"""The tables of a SQLite ledger, and the two numbers in its file that say so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from auditor.errors import LedgerError

APPLICATION: Final = 0x53334155
"""The file's `application_id`, "S3AU": it tells a ledger from the database of another program."""
FORMAT: Final = 1
"""The file's `user_version`."""

# Keys are blobs: SQLite compares them byte by byte, as S3's listing does, and a NUL does not end them.
_TABLES: Final = (
    """
CREATE TABLE digests (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    etag TEXT NOT NULL,
    version_id TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    hashed_at TEXT NOT NULL,
    source TEXT NOT NULL,
    verified_at TEXT,
    bytes_read INTEGER NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (bucket, key, etag, version_id, algorithm)
) WITHOUT ROWID
""",
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
    seal TEXT NOT NULL,
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
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)
_NUMBERS: Final = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
    "FROM pragma_application_id, pragma_user_version"
)
"""One query, so that another process makes no tables between two of its numbers."""


def set_up(connection: sqlite3.Connection, path: str) -> None:
    """Create the tables in an empty file. If several processes open the file at once, one of them does this.

    Raises LedgerError as is_made() does.
    """
    if is_made(connection, path):
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if not is_made(connection, path):  # asked again: from now on no other process can make the tables
            for statement in _TABLES:
                connection.execute(statement)


def is_made(connection: sqlite3.Connection, path: str) -> bool:
    """Return True if the file has the tables of this format, False if it is empty. Nothing is written.

    Raises LedgerError for a ledger of a newer auditor, and for every other database.
    """
    with closing(connection.execute(_NUMBERS)) as cursor:
        application, number, tables = cursor.fetchone()
    if (application, number) == (APPLICATION, FORMAT):
        return True
    if application == APPLICATION and number > FORMAT:
        raise LedgerError(f"--ledger sqlite:{path} was made by a newer auditor (format {number}): upgrade this one")
    if (application, number, tables) == (0, 0, 0):
        return False
    new = Path(path).with_stem(f"{Path(path).stem}-new")
    raise LedgerError(
        f"--ledger sqlite:{path} is the file of a development version of the auditor or of another program:"
        f" name a new file, for example sqlite:{new}"
    )
