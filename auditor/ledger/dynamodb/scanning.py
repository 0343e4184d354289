"""Read a whole DynamoDB ledger in key order.

The shards have the rows in this order. History lines are read by a Scan, and a temporary file sorts them.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from functools import partial
from itertools import groupby, islice
from typing import Any, Final, TypeVar

from auditor.aio.tasks import together
from auditor.errors import LedgerError
from auditor.ledger.base import Checked, Event, KeyRecord
from auditor.ledger.dynamodb.histories import DynamoHistories, lines_in
from auditor.ledger.dynamodb.items import DIGESTS, Item, partition
from auditor.ledger.dynamodb.ordered import KeyReading, keys_in_order
from auditor.ledger.dynamodb.table import Table
from auditor.ledger.seals import check_key, single_digests

SEGMENTS: Final = 4
"""Number of parts of the table that are scanned at the same time. Memory holds one page of each part, at most 1 MB."""
_FETCHED: Final = 500
_PAGE: Final = 250
"""Number of items that one Query to a shard returns."""

_WHOLE_ITEMS: Final[KeyReading[list[Item]]] = KeyReading(lambda _, items: items, _PAGE, _PAGE)

T = TypeVar("T")


class DynamoScans(DynamoHistories):
    """The part of a DynamoDB ledger that reads the items of many keys."""

    async def subjects(self, bucket: str, prefix: str = "", start_after: str = "") -> AsyncGenerator[KeyRecord, None]:
        """Yield the records of the keys that begin with `prefix` and come after `start_after`, in key order."""
        beginning = partition(bucket, prefix)
        async with aclosing(keys_in_order(self._table, bucket, prefix, start_after, _WHOLE_ITEMS)) as reading:
            async for pk, items in reading:
                key = pk[len(bucket) + 1 :]
                if pk.startswith(beginning) and key > start_after:
                    yield await self.record_of(bucket, key, items)

    async def histories(self, bucket: str, prefix: str = "") -> AsyncGenerator[list[Event], None]:
        """Yield the history lines of all keys that begin with `prefix`, in key order, as one list for each key."""
        wanted = {":wanted": {"S": partition(bucket, prefix)}}
        pages = _sorted(self._table, FilterExpression="begins_with(pk, :wanted)", ExpressionAttributeValues=wanted)
        async with aclosing(pages):
            async for page in pages:
                for pk, items in page:
                    if lines := lines_in(bucket, pk[len(bucket) + 1 :], _read(items)):
                        yield lines

    async def checked(self) -> AsyncGenerator[list[Checked], None]:
        """Check the items of all keys in all buckets for damage, and yield the results in lists."""
        pages = _sorted(self._table)
        async with aclosing(pages):
            async for page in pages:
                yield [one for pk, items in page if "/" in pk for one in _check(*pk.partition("/")[::2], _read(items))]


def _check(bucket: str, key: str, items: list[Item]) -> list[Checked]:
    versions = [item.evidence(bucket, key)[0] for item in items if item["sk"]["S"] >= DIGESTS]
    rows = [one for version in versions for one in single_digests(version)]
    return check_key(bucket, key, rows, lines_in(bucket, key, items))


def _read(items: Iterable[str]) -> list[Item]:
    return [Item(json.loads(item)) for item in items]


async def _sorted(table: Table, **arguments: Any) -> AsyncGenerator[list[tuple[str, list[str]]], None]:
    """Yield the items that a Scan with these arguments finds, each as JSON, grouped and sorted by pk, in lists."""
    with _spool() as spool:
        await together(_scan(table, arguments, segment, spool) for segment in range(SEGMENTS))
        groups = await spool.run(spool.in_order)
        while page := await spool.run(lambda: list(islice(groups, _FETCHED))):
            yield page


async def _scan(table: Table, arguments: dict[str, Any], segment: int, spool: _Spool) -> None:
    """Scan one segment of the table, and put its items into the temporary file `spool`."""
    async for items in table.pages("Scan", Segment=segment, TotalSegments=SEGMENTS, **arguments):
        await spool.run(partial(spool.put, items))


class _Spool:
    """A temporary file that collects items, and yields them sorted by key.

    Its methods but run() are called in the one thread of its executor.
    """

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self._executor = executor
        # A database without a name is a temporary file of SQLite, which deletes it when it is closed.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        # Nobody needs the file after this process, so it need not survive a crash.
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -8000"):
            self._connection.execute(f"PRAGMA {setting}").fetchall()
        self._connection.execute("CREATE TABLE items (key BLOB NOT NULL, item TEXT NOT NULL)")

    async def run(self, work: Callable[[], T]) -> T:
        """Call `work` in the spool's thread, and return its result. SQLite's errors become a LedgerError."""

        def guarded() -> T:
            try:
                return work()
            except sqlite3.Error as error:
                raise LedgerError(
                    f"the ledger's keys cannot be sorted: {error}; set TMPDIR to a directory with free space"
                ) from error

        return await asyncio.get_running_loop().run_in_executor(self._executor, guarded)

    def put(self, items: Iterable[Item]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO items VALUES (?, ?)",
            ((one["pk"]["S"].encode("utf-8", "surrogatepass"), json.dumps(one)) for one in items),
        )
        self._connection.execute("COMMIT")

    def in_order(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the collected items, each as JSON, in groups, one for each pk, in the order of the pks."""
        rows = self._connection.execute("SELECT key, item FROM items ORDER BY key")
        for key, members in groupby(rows, key=lambda row: row[0]):
            yield key.decode("utf-8", "surrogatepass"), [item for _, item in members]

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _spool() -> Iterator[_Spool]:
    executor = ThreadPoolExecutor(1, thread_name_prefix="spool")
    spool = _Spool(executor)
    try:
        yield spool
    finally:
        executor.submit(spool.close)  # after the work that a cancellation left in the thread
        executor.shutdown(wait=False)
