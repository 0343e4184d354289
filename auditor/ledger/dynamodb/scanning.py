"""Yield every key of a bucket in order. A Scan has no order, so a temporary file sorts its items."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, TypeVar

from auditor.aio.groups import together
from auditor.errors import LedgerError
from auditor.ledger.base import Checked, HistoryEntry, KeyRecord
from auditor.ledger.dynamodb.evidence import record_of
from auditor.ledger.dynamodb.items import (
    DIGESTS,
    LAST_LINE,
    RECORDED,
    STATE,
    Item,
    add,
    evidence,
    partition,
    state_of,
)
from auditor.ledger.dynamodb.lines import lines_in
from auditor.ledger.dynamodb.table import Table
from auditor.ledger.key_record import KeyRows
from auditor.ledger.seals import check_key, entries

SEGMENTS: Final = 4
"""Number of parts of the table that are scanned at once. Memory holds one page of each part, at most 1 MB."""
_FETCHED: Final = 500
_LINES: Final = "sk BETWEEN :first AND :last OR sk >= :digests"
"""Selects the items of lines and of digests."""
_LINE_NAMES: Final = {":first": {"S": RECORDED}, ":last": {"S": LAST_LINE}, ":digests": {"S": DIGESTS}}

T = TypeVar("T")


async def subjects(table: Table, bucket: str, prefix: str) -> AsyncGenerator[KeyRecord, None]:
    """Yield the records of the keys below a prefix. The whole table is read, because DynamoDB has no order between
    keys.
    """
    wanted = "begins_with(pk, :wanted) AND sk >= :state"
    values = {":wanted": {"S": partition(bucket, prefix)}, ":state": {"S": STATE}}
    async for page in _sorted(table, wanted, values):
        for pk, items in page:
            rows, key = KeyRows(), pk[len(bucket) + 1 :]
            for item in items:
                add(rows, bucket, key, item)
            yield await record_of(table, bucket, key, rows)


async def histories(table: Table, bucket: str, prefix: str) -> AsyncGenerator[list[HistoryEntry], None]:
    """Yield all lines of each key below a prefix."""
    values = {":wanted": {"S": partition(bucket, prefix)}}
    async for page in _sorted(table, f"begins_with(pk, :wanted) AND ({_LINES})", values | _LINE_NAMES):
        for pk, items in page:
            yield entries(bucket, lines_in(bucket, pk[len(bucket) + 1 :], items))


async def checked(table: Table) -> AsyncGenerator[list[Checked], None]:
    """Check the rows and lines of all keys of all buckets."""
    async for page in _sorted(table, _LINES, _LINE_NAMES):
        yield [one for pk, items in page if "/" in pk for one in _check(*pk.partition("/")[::2], items)]


def _check(bucket: str, key: str, items: list[Item]) -> list[Checked]:
    rows = []
    for item in items:
        if item["sk"]["S"] >= DIGESTS:
            version, _ = evidence(bucket, key, item)
            for name, known in version.digests.items():
                rows.append((version, name, state_of(bucket, key, item, name, known)))
    return check_key(bucket, key, rows, lines_in(bucket, key, items))


_Group = tuple[str, list[Item]]


async def _sorted(table: Table, wanted: str, values: dict[str, Any]) -> AsyncGenerator[list[_Group], None]:
    """Yield the wanted items of each pk, in the order of the pks, many at a time."""
    async with _spool() as spool:
        await together(_scan(table, wanted, values, segment, spool) for segment in range(SEGMENTS))
        groups = await spool.run(spool.in_order)
        while page := await spool.run(lambda: list(islice(groups, _FETCHED))):
            yield page


async def _scan(table: Table, wanted: str, values: dict[str, Any], segment: int, spool: _Spool) -> None:
    """Read one part of the table into the spool."""
    pages = table.pages(
        "Scan",
        Segment=segment,
        TotalSegments=SEGMENTS,
        FilterExpression=wanted,
        ExpressionAttributeValues=values,
    )
    async for items in pages:
        await spool.run(lambda items=items: spool.put(items))  # type: ignore[misc]


class _Spool:
    """A temporary file that collects all items and then returns them sorted by key. Only its own thread uses it."""

    def __init__(self, executor: ThreadPoolExecutor, folder: str) -> None:
        self._executor = executor
        self._folder = folder
        self._connection: sqlite3.Connection | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work in the spool's thread. Turn SQLite's errors into LedgerError."""

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

    def put(self, items: Iterable[Item]) -> None:
        connection = self._open()
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO items VALUES (?, ?)",
            ((one["pk"]["S"].encode("utf-8", "surrogatepass"), json.dumps(one)) for one in items),
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
