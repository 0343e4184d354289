"""Yield every key of a bucket in order. A Scan has no order, so a temporary file sorts its items."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

from auditor.aio.groups import together
from auditor.errors import LedgerError
from auditor.ledger.base import KeyRecord
from auditor.ledger.dynamodb.items import STATE, Item, add, partition
from auditor.ledger.dynamodb.table import Table
from auditor.ledger.key_record import KeyRows, key_record_of

SEGMENTS: Final = 4
"""Number of parts of the table that are scanned at once. Memory holds a page of each, at most 1 MB."""
_FETCHED: Final = 500

T = TypeVar("T")


async def subjects(table: Table, bucket: str, prefix: str) -> AsyncGenerator[KeyRecord, None]:
    """Yield the records of the keys below a prefix. Any prefix reads the whole table: DynamoDB has no order between
    keys.
    """
    async with _spool() as spool:
        await together(_scan(table, bucket, prefix, segment, spool) for segment in range(SEGMENTS))
        rows = await spool.run(spool.in_order)
        while page := await spool.run(lambda: _next_subjects(rows)):
            for subject in page:
                yield subject


async def _scan(table: Table, bucket: str, prefix: str, segment: int, spool: _Spool) -> None:
    """Read one part of the table into the spool."""
    pages = table.pages(
        "Scan",
        Segment=segment,
        TotalSegments=SEGMENTS,
        FilterExpression="begins_with(pk, :wanted) AND sk >= :state",
        ExpressionAttributeValues={":wanted": {"S": partition(bucket, prefix)}, ":state": {"S": STATE}},
    )
    async for items in pages:
        await spool.run(lambda items=items: spool.put(items, len(bucket) + 1))  # type: ignore[misc]


_Group = tuple[str, list[Item]]


def _next_subjects(groups: Iterator[_Group]) -> list[KeyRecord]:
    """Return the records of the next keys."""
    found = []
    for key, items in groups:
        rows = KeyRows()
        for item in items:
            add(rows, key, item)
        found.append(key_record_of(key, rows))
        if len(found) == _FETCHED:
            break
    return found


class _Spool:
    """A temporary file that collects all items and then returns them sorted by key. Only its own thread uses it."""

    def __init__(self, executor: ThreadPoolExecutor, folder: str) -> None:
        self._executor = executor
        self._folder = folder
        self._connection: sqlite3.Connection | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work in the spool's thread. Raise LedgerError for SQLite's errors."""

        def guarded() -> T:
            try:
                return work()
            except sqlite3.Error as error:
                raise LedgerError(
                    f"the ledger's keys cannot be sorted in {self._folder}: {error};"
                    " name a directory with room in TMPDIR"
                ) from error

        return await asyncio.get_running_loop().run_in_executor(self._executor, guarded)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(Path(self._folder) / "keys.db", isolation_level=None)
            # Nobody needs the file after this process, so it need not survive a crash.
            for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -8000"):
                self._connection.execute(f"PRAGMA {setting}").fetchall()
            self._connection.execute("CREATE TABLE items (key BLOB NOT NULL, item TEXT NOT NULL)")
        return self._connection

    def put(self, items: Iterable[Item], skipped: int) -> None:
        """Add items. skipped: number of characters of pk before the object key."""
        connection = self._open()
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO items VALUES (?, ?)",
            ((one["pk"]["S"][skipped:].encode("utf-8", "surrogatepass"), json.dumps(one)) for one in items),
        )
        connection.execute("COMMIT")

    def in_order(self) -> Iterator[_Group]:
        """Yield the items of each key, sorted by key."""
        rows = self._open().execute("SELECT key, item FROM items ORDER BY key")
        for key, members in groupby(rows, key=lambda row: row[0]):
            yield key.decode("utf-8", "surrogatepass"), [json.loads(item) for _, item in members]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="auditor-ledger-")
    except OSError as error:
        raise LedgerError(
            f"the ledger's keys cannot be sorted ({error.strerror}): name a directory with room in TMPDIR"
        ) from error


def _clean_up(spool: _Spool, folder: tempfile.TemporaryDirectory[str]) -> None:
    spool.close()
    folder.cleanup()


@asynccontextmanager
async def _spool() -> AsyncIterator[_Spool]:
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(1, thread_name_prefix="spool")
    try:
        folder = await loop.run_in_executor(executor, _folder)
        spool = _Spool(executor, folder.name)
        try:
            yield spool
        finally:
            await loop.run_in_executor(executor, _clean_up, spool, folder)  # one call: a cancellation cannot split it
    finally:
        executor.shutdown(wait=False)
