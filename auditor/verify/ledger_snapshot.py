"""The snapshot of the ledger in a verification's folder, from which later invocations read their own range of keys."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from auditor.errors import OutputError
from auditor.ledger.base import KeyRecord
from auditor.ledger.snapshot import ScannedLedger
from auditor.model.dates import iso_date, now_in_utc
from auditor.model.json_text import parse_object, typed
from auditor.runs.packed_lines import packed_lines
from auditor.runs.paths import bucket_path, new_run_id
from auditor.runs.stores.base import Store

VERSION: Final = 1
_PART_BYTES: Final = 4 * 1024 * 1024
"""Number of bytes, before compression, after which a part of the snapshot ends. Memory holds one part."""
_LARGEST_PART: Final = 2 * _PART_BYTES
"""Limit in bytes of a part that is read: its last line, a key with all its versions, may be long."""
_LEVEL: Final = 1
"""zlib's level: the snapshot is deleted when the verification is complete."""
_AT_ONCE: Final = 500

_ABANDONED: Final = timedelta(days=3)
"""Age of a verification that no invocation goes on with: 200 of 15 minutes each (lambdas.handover.MOST_HOPS) take two
days."""
_OF_SNAPSHOT: Final = re.compile(r"bucket=[^/]+/verify=([^/]+)/(?:ledger\.json|ledger/[^/]+)")

InThread = Callable[..., Awaitable[Any]]
"""A function that calls a blocking function with arguments in a thread, and returns its result."""


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A part of a snapshot: the last key and the number of its lines."""

    last: str
    lines: int


@dataclass(frozen=True, slots=True)
class SnapshotIndex:
    """The index of a snapshot. It is written last, so that a snapshot with an index is whole.

    taken_at: time before the first row was read, ISO 8601 in UTC.
    """

    taken_at: str
    parts: tuple[SnapshotPart, ...]


def discard_abandoned(store: Store, bucket: str, now: datetime) -> None:
    """Delete the snapshots of a bucket's verifications that were killed, so that they never deleted them. Blocks."""
    before = new_run_id(now - _ABANDONED, b"\0\0\0")
    for path in store.list(f"{bucket_path(bucket)}/verify="):
        if (found := _OF_SNAPSHOT.fullmatch(path)) is not None and found[1] < before:
            store.delete(path)


class LedgerSnapshot:
    """The ledger's rows of a verification's target, in files below its folder.

    folder: path of the verification's folder in the store. taken_at: time of the snapshot, ISO 8601 in UTC; "" before
    the first record.
    """

    def __init__(self, store: Store, folder: str, bucket: str, ledger: ScannedLedger, in_thread: InThread) -> None:
        self.taken_at = ""
        self._store = store
        self._index_path = f"{folder}/ledger.json"
        self._folder = f"{folder}/ledger"
        self._bucket = bucket
        self._ledger = ledger
        self._in_thread = in_thread

    async def records(self, prefix: str, start_after: str) -> AsyncGenerator[KeyRecord, None]:
        """Yield the records of the keys that begin with `prefix` and come after `start_after`, in key order, as they
        were when the snapshot was taken. Take it first if the folder has none.

        Raises OutputError if the snapshot is damaged, and LedgerError.
        """
        index = await self._in_thread(self._load) or await self._take(prefix, start_after)
        self.taken_at = index.taken_at
        for number, part in enumerate(index.parts):
            if part.last <= start_after:
                continue
            lines = await self._in_thread(self._lines, number, part.lines)
            for first in range(0, len(lines), _AT_ONCE):
                for record in await self._read(number, lines[first : first + _AT_ONCE]):
                    if record.key > start_after:
                        yield record

    async def _read(self, number: int, lines: list[bytes]) -> list[KeyRecord]:
        try:
            return await self._ledger.imported(self._bucket, lines)
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(self._path(number)) from error

    async def _take(self, prefix: str, start_after: str) -> SnapshotIndex:
        taken_at = now_in_utc()
        parts: list[SnapshotPart] = []
        waiting: list[bytes] = []
        last, size = "", 0

        async def end_part() -> None:
            nonlocal waiting, size
            if waiting:
                await self._in_thread(self._put, len(parts), waiting)
                parts.append(SnapshotPart(last, len(waiting)))
                waiting, size = [], 0

        exported = self._ledger.exported(self._bucket, prefix, start_after)
        async with aclosing(exported):
            async for lines in exported:
                for key, line in lines:
                    waiting.append(line)
                    last, size = key, size + len(line)
                    if size >= _PART_BYTES:
                        await end_part()
        await end_part()
        index = SnapshotIndex(taken_at, tuple(parts))
        data = json.dumps({"v": VERSION, **asdict(index)}).encode() + b"\n"
        await self._in_thread(self._store.put, self._index_path, data)
        return index

    def discard(self) -> None:
        """Delete the snapshot, its index first, and the parts that a killed invocation left without one. Blocks."""
        self._store.delete(self._index_path)
        for path in self._store.list(f"{self._folder}/"):
            self._store.delete(path)

    def _path(self, number: int) -> str:
        return f"{self._folder}/part-{number:05}.jsonl.gz"

    def _put(self, number: int, lines: list[bytes]) -> None:
        self._store.put(self._path(number), gzip.compress(b"".join(lines), _LEVEL, mtime=0))

    def _lines(self, number: int, count: int) -> list[bytes]:
        data = self._store.get(self._path(number))
        try:
            lines = [line.rstrip(b"\n") for line in packed_lines(data or b"", _LARGEST_PART)]
        except (OSError, EOFError, zlib.error) as error:
            raise self._damaged(self._path(number)) from error
        if len(lines) != count:
            raise self._damaged(self._path(number))
        return lines

    def _load(self) -> SnapshotIndex | None:
        data = self._store.get(self._index_path)
        if data is None:
            return None
        try:
            value = parse_object(data)
            if value["v"] != VERSION:
                raise ValueError("another version's")
            index = typed(SnapshotIndex, value)
            iso_date(index.taken_at)
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(self._index_path) from error
        return index

    def _damaged(self, path: str) -> OutputError:
        return OutputError(f"{self._store.uri(path)} is not there or damaged: verify again")
