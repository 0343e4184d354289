"""The embedded ledger: one SQLite file, used from a thread of its own, shared by any number of processes."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final, TypeVar

from auditor.errors import LedgerError, UsageError
from auditor.ledgers.interface import Entry, Ledger
from auditor.ledgers.matching import NULL, Row, conflict, match
from auditor.models import ObjectRef

SCHEMA_VERSION: Final = 1
BUSY_SECONDS: Final = 30.0
# Keys are blobs: SQLite compares them byte by byte, and no NUL ends them early.
_SCHEMA: Final = """
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
_PER_QUERY: Final = 400
"""Refs a query: two variables each, and the oldest SQLite allows 999."""

T = TypeVar("T")
_Found = dict[tuple[bytes, str], list[Row]]


class SqliteLedger:
    """A ledger in one file. Every write is one transaction, on the disk before `record` returns."""

    def __init__(self, path: str, connection: sqlite3.Connection, executor: ThreadPoolExecutor) -> None:
        self._path = path
        self._connection = connection
        self._executor = executor

    async def known(self, bucket: str, refs: Sequence[ObjectRef], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        identities = list({(_blob(ref.key), ref.etag) for ref in refs})
        found = await self._run(lambda: self._look_up(bucket, identities))
        return [match(found.get((_blob(ref.key), ref.etag), ()), ref, algorithms) for ref in refs]

    async def record(self, entry: Entry) -> bool:
        return await self._run(lambda: self._write(entry))

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, _guarded, self._path, work)

    def _look_up(self, bucket: str, identities: Sequence[tuple[bytes, str]]) -> _Found:
        digests: dict[tuple[bytes, str, str, int], dict[str, str]] = defaultdict(dict)
        for start in range(0, len(identities), _PER_QUERY):
            part = identities[start : start + _PER_QUERY]
            for key, etag, version, size, algorithm, digest in self._select(bucket, part):
                digests[key, etag, version, size][algorithm] = digest
        found: _Found = defaultdict(list)
        for (key, etag, version, size), values in digests.items():
            found[key, etag].append(Row(version, etag, size, values))
        return found

    def _select(
        self, bucket: str, identities: Sequence[tuple[bytes, str]]
    ) -> Iterable[tuple[bytes, str, str, int, str, str]]:
        query = look_up_query(len(identities))
        return self._connection.execute(query, [part for pair in identities for part in pair] + [bucket])

    def _write(self, entry: Entry) -> bool:
        identity = (entry.bucket, _blob(entry.key), entry.etag, entry.version_id or NULL)
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            rows = self._connection.execute(
                "SELECT algorithm, size, digest FROM digests "
                "WHERE bucket = ? AND key = ? AND etag = ? AND version_id = ?",
                identity,
            ).fetchall()
            stored = {algorithm: digest for algorithm, _, digest in rows}
            if any(size != entry.size for _, size, _ in rows):
                raise conflict(entry, "size")
            for algorithm, digest in entry.digests.items():
                if stored.get(algorithm, digest) != digest:
                    raise conflict(entry, algorithm)
            new = [
                (*identity, name, entry.size, digest, entry.hashed_at)
                for name, digest in entry.digests.items()
                if name not in stored
            ]
            self._connection.executemany("INSERT INTO digests VALUES (?,?,?,?,?,?,?,?)", new)
        return bool(new)


def look_up_query(pairs: int) -> str:
    """One query for `pairs` of key and etag, which are its first variables; the bucket is its last."""
    values = ",".join(["(?,?)"] * pairs)
    # CROSS JOIN keeps SQLite to this order: one search of the primary key for each wanted pair.
    return (
        f"WITH wanted(key, etag) AS (VALUES {values}) "  # noqa: S608 - only question marks are put in
        "SELECT d.key, d.etag, d.version_id, d.size, d.algorithm, d.digest FROM wanted w CROSS JOIN digests d "
        "WHERE d.bucket = ? AND d.key = w.key AND d.etag = w.etag"
    )


@asynccontextmanager
async def open_sqlite(
    name: str, *, region: str | None = None, endpoint_url: str | None = None, profile: str | None = None
) -> AsyncIterator[Ledger]:
    """The ledger in the file `name`, made when it is not there; its directory must be. No AWS setting applies."""
    path = _file(name)
    executor = ThreadPoolExecutor(1, thread_name_prefix="ledger")
    loop = asyncio.get_running_loop()
    try:
        connection = await loop.run_in_executor(executor, _guarded, path, lambda: _connect(path))
        try:
            yield SqliteLedger(path, connection, executor)
        finally:
            await loop.run_in_executor(executor, connection.close)
    finally:
        executor.shutdown(wait=False)


def _file(name: str) -> str:
    if name == ":memory:":
        return name
    try:
        return str(Path(name).expanduser())
    except RuntimeError as error:
        raise UsageError(f"--ledger sqlite:{name[:200]}: there is no such home directory: write it out") from error


def _blob(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _connect(path: str) -> sqlite3.Connection:
    parent = Path(path).parent
    if path != ":memory:" and not parent.is_dir():
        raise LedgerError(f"the directory of --ledger sqlite:{path} does not exist: make {str(parent)!r} first")
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        _set_up(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection, path: str) -> None:
    _use_wal(connection)
    if _version(connection) == SCHEMA_VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        version = _version(connection)  # again, now that no other process can be making the table
        if version > SCHEMA_VERSION:
            raise LedgerError(
                f"--ledger sqlite:{path} was made by a newer auditor (schema {version}): upgrade this one"
            )
        if version == SCHEMA_VERSION:
            return
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise LedgerError(f"--ledger sqlite:{path} is another program's database: name another file")
        connection.execute(_SCHEMA)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    with closing(connection.execute("PRAGMA user_version")) as cursor:
        return int(cursor.fetchone()[0])


def _use_wal(connection: sqlite3.Connection) -> None:
    """Readers and the writer do not wait for each other. The switch itself ignores the busy timeout, so it is tried."""
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


def _guarded(path: str, work: Callable[[], T]) -> T:
    """Do the work; what SQLite raises leaves as one clear sentence."""
    try:
        return work()
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code, without the extended one's detail
        reason = _REASONS.get(code, f"fails: {error}")
        raise LedgerError(f"the ledger sqlite:{path} {reason}") from error
