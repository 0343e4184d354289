"""Open the file of an embedded ledger, and turn SQLite's errors into clear sentences."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from auditor.errors import LedgerError, UsageError
from auditor.ledger.sqlite.schema import set_up

BUSY_SECONDS: Final = 30.0
MEMORY: Final = ":memory:"
"""The name, in place of a path, of a ledger without a file. It is lost when it is closed."""

T = TypeVar("T")


def file_of(name: str) -> str:
    """Return the path that a ledger's URI names."""
    if name == MEMORY:
        return name
    try:
        return str(Path(name).expanduser())
    except RuntimeError as error:
        raise UsageError(f"--ledger sqlite:{name[:200]}: there is no such home directory: write it out") from error


def blob(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def text(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")


def connect(path: str) -> sqlite3.Connection:
    """Open the file, or make it. Upgrade its tables to this version."""
    parent = Path(path).parent
    if path != MEMORY and not parent.is_dir():
        raise LedgerError(f"the directory of --ledger sqlite:{path} does not exist: make {str(parent)!r} first")
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        _use_wal(connection)
        set_up(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the `with` block as one transaction: at its end all changes are on the disk, or none."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, in which readers and the writer do not wait for each other.

    The switch ignores the busy timeout, so retry it.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


_REASONS: Final = {
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check the path and its permissions",
    sqlite3.SQLITE_READONLY: "cannot be written: check its permissions and those of its directory",
    sqlite3.SQLITE_PERM: "cannot be written: check its permissions",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database: name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore it from a copy, or name another file",
    sqlite3.SQLITE_BUSY: f"was locked by another process for {BUSY_SECONDS:.0f} seconds: try again when that one ends",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
}


def guarded(path: str, work: Callable[[], T]) -> T:
    """Do the work and return its result. Turn SQLite's errors into LedgerError with a clear sentence."""
    try:
        return work()
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code, without the extended one's detail
        reason = _REASONS.get(code, f"fails: {error}")
        raise LedgerError(f"the ledger sqlite:{path} {reason}") from error
