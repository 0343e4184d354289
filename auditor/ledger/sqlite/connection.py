"""Open the file of a SQLite ledger, and turn SQLite's errors into sentences for the user."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from auditor.errors import LedgerError, LedgerFileError, LedgerGoneError, LedgerReadOnlyError
from auditor.ledger import MEMORY
from auditor.ledger.sqlite.schema import is_made, set_up

BUSY_SECONDS: Final = 30.0

T = TypeVar("T")


def blob(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def text(key: bytes) -> str:
    """Return a stored key. Raises LedgerError for a damaged one, which has no place in the order of keys."""
    try:
        return key.decode("utf-8", "surrogatepass")
    except (AttributeError, UnicodeDecodeError) as error:  # SQLite keeps a value of any type in any column
        raise LedgerError("the ledger has a damaged key: `auditor ledger --check` names it") from error


def any_text(key: bytes) -> str:
    """Return a stored key, or for a damaged one a text that no seal of the key's rows holds for."""
    try:
        return text(key)
    except LedgerError:
        return as_text(key) or ""


def _decoded(value: bytes) -> str | bytes:
    """Return a stored text; the bytes of a damaged one that is not UTF-8, which then differs from every text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def as_text(value: object) -> str | None:
    """Return the stored value of a column for texts, which may be damaged, as a text."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def as_number(value: object) -> int | None:
    """Return the stored value of a column for numbers; None if it is no number."""
    return value if isinstance(value, int) else None


def connect(path: str) -> sqlite3.Connection:
    """Open the file of a SQLite ledger. Create it if it is missing.

    If the directory cannot be written, open an existing file for reading only. Raises LedgerError.
    """
    parent = Path(path).parent
    if path != MEMORY and not parent.is_dir():
        raise LedgerError(f"the directory of --ledger sqlite:{path} does not exist: create {str(parent)!r} first")
    if path != MEMORY:
        _create(path)

    def prepare(opened: sqlite3.Connection) -> None:
        is_made(opened, path)  # before the first write: the file of another program stays as it is
        _use_wal(opened)

    try:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, factory=FileConnection)
        if path != MEMORY:
            connection.watch(Path(path))
        return _opened(path, connection, prepare)
    except sqlite3.OperationalError as error:
        if _code(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or not _is_sealed_off(Path(path)):
            raise
    return _connect_unlocked(path)


def _create(path: str) -> None:
    """Create the file, for its owner alone (mode 600), if it is missing. SQLite gives its -wal and -shm the same mode.

    Raises LedgerError for a symbolic link that leads to no file: SQLite would create one there.
    """
    if os.path.islink(path) and not os.path.exists(path):
        raise LedgerError(f"the ledger sqlite:{path} is a symbolic link to a missing file: name the file itself")
    with suppress(OSError):  # it exists; or SQLite says why it cannot be created
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _opened(
    path: str, connection: sqlite3.Connection, prepare: Callable[[sqlite3.Connection], object]
) -> sqlite3.Connection:
    """Prepare the connection, set up its tables, and return it; close it if one of these steps fails."""
    connection.text_factory = _decoded
    try:
        prepare(connection)
        set_up(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_sealed_off(file: Path) -> bool:
    """True if the file exists, and SQLite cannot create its -wal and -shm files in the file's directory."""
    effective = os.access in os.supports_effective_ids
    return file.is_file() and not os.access(file.resolve().parent, os.W_OK, effective_ids=effective)


class FileConnection(sqlite3.Connection):
    """A connection to a file that other programs may delete: SQLite goes on writing into the deleted file."""

    file: Path | None = None

    def watch(self, file: Path) -> None:
        """Remember the inode of the file, for check()."""
        self.file, self.seen = file, _state(file)[:1]

    def check(self) -> None:
        """Raise LedgerGoneError if the path has no file any more, or another one than at watch()."""
        if self.file is not None and _state(self.file)[:1] != self.seen:
            raise LedgerGoneError(
                f"the ledger sqlite:{self.file} was deleted or replaced while it was open, and what was recorded since"
                " is lost: restore it from a copy, or start a new one, and run again"
            )


class UnlockedConnection(sqlite3.Connection):
    """A connection that reads a file without locks, because the file for the locks (-shm) cannot be created."""

    def watch(self, file: Path) -> None:
        """Remember inode, size and time of the file before the first read, for check()."""
        self.file, self.seen = file, _state(file)

    def check(self) -> None:
        """Raise LedgerError if the file was written after watch(): the results may then be half old and half new."""
        if _state(self.file) != self.seen:
            raise LedgerError(f"the ledger sqlite:{self.file} was written while it was read: run again")


def _state(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _connect_unlocked(path: str) -> sqlite3.Connection:
    """Open a ledger's file for reading only, without locks, because this process cannot create files in its directory.

    SQLite's URI parameter `immutable` would ignore data in the -wal file. SQLite's VFS `unix-none`, in exclusive mode,
    reads that file, and keeps its index in memory (https://www.sqlite.org/wal.html#noshm).
    """
    file = Path(path).resolve()
    if _has_bytes(f"{file}-journal"):
        raise LedgerError(
            f"the ledger sqlite:{path} has an unfinished write: copy it with its -journal, and open the copy"
        )
    how = "vfs=unix-none" if _has_bytes(f"{file}-wal") else "immutable=1"
    connection = sqlite3.connect(
        f"{file.as_uri()}?mode=ro&{how}", uri=True, isolation_level=None, factory=UnlockedConnection
    )
    connection.watch(file)
    return _opened(path, connection, lambda opened: opened.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone())


def _has_bytes(path: str) -> bool:
    return os.path.isfile(path) and os.path.getsize(path) > 0


def unchanged(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    """Call `work` and return its result. Raises LedgerError if the file is read without locks and was written
    meanwhile, or if it was deleted.
    """
    try:
        return work()
    finally:
        if isinstance(connection, UnlockedConnection | FileConnection):
            connection.check()


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the `with` block as one transaction: at its end either all changes are on the disk, or none."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL mode, in which readers and a writer do not wait for each other.

    SQLite does not wait for locks in this switch, so a switch that meets a lock is retried here.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


_REASONS: Final = {
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check the path and its permissions",
    sqlite3.SQLITE_READONLY: "cannot be written: check its permissions and those of its directory",
    sqlite3.SQLITE_PERM: "cannot be written: check its permissions",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database: name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore it from a copy, or name another file",
    sqlite3.SQLITE_BUSY: f"was locked by another process for {BUSY_SECONDS:.0f} seconds: try again later",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
}
_KINDS: Final = {
    sqlite3.SQLITE_CANTOPEN: LedgerFileError,
    sqlite3.SQLITE_FULL: LedgerFileError,
    sqlite3.SQLITE_IOERR: LedgerFileError,
    sqlite3.SQLITE_READONLY: LedgerReadOnlyError,
}


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code, without the details of the extended one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def guarded(path: str, work: Callable[[], T]) -> T:
    """Call `work` and return its result. An error of SQLite becomes a LedgerError for the user.

    path: path of the ledger's file, for the message.
    """
    try:
        return work()
    except sqlite3.Error as error:
        kind = _KINDS.get(_code(error), LedgerError)
        raise kind(f"the ledger sqlite:{path} {_REASONS.get(_code(error), f'fails: {error}')}") from error
    except UnicodeDecodeError as error:  # SQLite's own words quote a name in the file that is damaged
        raise LedgerError(f"the ledger sqlite:{path} {_REASONS[sqlite3.SQLITE_CORRUPT]}") from error
