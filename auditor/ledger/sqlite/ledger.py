"""The SQLite ledger: one file, which any number of processes share. Each of them uses it in one thread."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from auditor.errors import DigestConflict
from auditor.ledger import file_of
from auditor.ledger.base import Checked, Entry, Event, Expectation, KeyRecord, Ledger, Notice, OrderedReader
from auditor.ledger.leases import Held, Lease, Work, lost, read_checkpoint, work_name, write_checkpoint
from auditor.ledger.matching import match
from auditor.ledger.sqlite import digests, evidence
from auditor.ledger.sqlite.connection import as_number, as_text, blob, connect, guarded, unchanged, writing
from auditor.ledger.sqlite.digests import RowPage, look_up_query
from auditor.ledger.sqlite.ordered import PageReader
from auditor.model.object import AnyVersion

__all__ = ["SqliteLedger", "look_up_query", "open_sqlite"]

T = TypeVar("T")
Clock = Callable[[], float]


class SqliteLedger(Struct, eq=False):
    """A ledger in one SQLite file. Every write is a transaction that is on the disk before its method returns."""

    path: str
    connection: sqlite3.Connection
    executor: ThreadPoolExecutor
    clock: Clock = time.time

    async def known(
        self, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        identities = list({(blob(ref.key), ref.etag) for ref in refs})
        found = await self._run(lambda: digests.look_up(self.connection, bucket, identities))
        return [match(found.get((blob(ref.key), ref.etag), ()), ref, algorithms) for ref in refs]

    def in_order(self, bucket: str) -> OrderedReader:
        async def read(first: bytes, limit: int) -> RowPage:
            return await self._run(lambda: digests.read_page(self.connection, bucket, first, limit))

        return PageReader(read, partial(self.known, bucket))

    async def heal(self, bucket: str, keys: Sequence[str]) -> int:
        return await self._run(lambda: digests.heal(self.connection, bucket, keys))

    async def record(self, entry: Entry) -> bool:
        (answer,) = await self.record_many([entry])
        if isinstance(answer, DigestConflict):
            raise answer
        return answer

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        return await self._run(lambda: digests.record(self.connection, entries))

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        return await self._run(lambda: self._claim(work, owner, seconds))

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        until = self.clock() + seconds
        return await self._run(lambda: self._renew(lease, until, checkpoint))

    async def release(self, lease: Lease, *, done: bool) -> None:
        await self._run(lambda: self._release(lease, done))

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        await self._run(lambda: evidence.note(self.connection, bucket, events))

    async def history(self, bucket: str, key: str) -> list[Event]:
        return await self._run(lambda: digests.lines_of(self.connection, bucket, blob(key)))

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        return await self._run(lambda: evidence.arrived(self.connection, bucket, notice))

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        return await self._run(lambda: evidence.expect(self.connection, bucket, expectations))

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        return await self._run(lambda: evidence.subject(self.connection, bucket, key))

    async def subjects(self, bucket: str, prefix: str = "", start_after: str = "") -> AsyncGenerator[KeyRecord, None]:
        after = start_after
        while page := await self._run(partial(evidence.page, self.connection, bucket, prefix, after)):
            for subject in page:
                yield subject
            after = page[-1].key

    async def histories(self, bucket: str, prefix: str = "") -> AsyncGenerator[list[Event], None]:
        after: str | None = None
        while page := await self._run(partial(evidence.histories, self.connection, bucket, prefix, after)):
            found, after = page
            yield found

    async def checked(self) -> AsyncGenerator[list[Checked], None]:
        after: tuple[str, bytes] | None = None
        while page := await self._run(partial(evidence.checked, self.connection, after)):
            found, after = page
            yield found

    def _claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        """Claim a lease in one transaction, so that only one of several claims at once succeeds."""
        name = work_name(work)
        with writing(self.connection):
            now = self.clock()  # read here, after the transaction has waited for the other writers
            row = self.connection.execute(
                "SELECT owner, until, fence, hops, checkpoint FROM leases WHERE work = ?", (name,)
            ).fetchone()
            holder, until, fence, hops, checkpoint = _lease_of(*row) if row else (None, 0.0, 0, 0, None)
            if holder is not None and holder != owner and until > now:
                if until > now + seconds:  # the holder's clock runs ahead: if it died, its lease would last too long
                    until = now + seconds
                    self.connection.execute("UPDATE leases SET until = ? WHERE work = ?", (until, name))
                return Held(holder, until)
            self.connection.execute(
                "INSERT INTO leases (work, bucket, key, owner, until, fence, hops) VALUES (?,?,?,?,?,?,?) "
                "ON CONFLICT DO UPDATE SET "
                "owner = excluded.owner, until = excluded.until, fence = excluded.fence, hops = excluded.hops",
                (name, work.bucket, blob(work.key), owner, now + seconds, fence + 1, hops + 1),
            )
        return Lease(work, owner, now + seconds, fence + 1, hops + 1, read_checkpoint(checkpoint))

    def _renew(self, lease: Lease, until: float, checkpoint: Mapping[str, Any] | None) -> Lease:
        written = None if checkpoint is None else write_checkpoint(checkpoint)
        with writing(self.connection):
            changed = self.connection.execute(
                "UPDATE leases SET until = ?, checkpoint = coalesce(?, checkpoint) "
                "WHERE work = ? AND owner = ? AND fence = ?",
                (until, written, work_name(lease.work), lease.owner, lease.fence),
            ).rowcount
        if not changed:
            raise lost(lease)
        return replace(lease, until=until, checkpoint=lease.checkpoint if checkpoint is None else checkpoint)

    def _release(self, lease: Lease, done: bool) -> None:
        """End the lease; do nothing if its owner has lost it already.

        The row of the lease stays: its fence, the number of the claim, makes later writes of the old owner fail. done:
        True if the work is finished: delete the checkpoint, and count claims from 0 again.
        """
        forget = ", checkpoint = NULL, hops = 0" if done else ""
        with writing(self.connection):
            self.connection.execute(
                f"UPDATE leases SET owner = NULL, until = 0{forget} WHERE work = ? AND owner = ? AND fence = ?",  # noqa: S608
                (work_name(lease.work), lease.owner, lease.fence),
            )

    async def _run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executor, guarded, self.path, lambda: unchanged(self.connection, work))


def _lease_of(
    owner: object, until: object, fence: object, hops: object, checkpoint: object
) -> tuple[str | None, float, int, int, str | None]:
    """Return the row of a lease. A damaged time has passed, and a damaged number is 0."""
    ends = until if isinstance(until, int | float) else 0.0
    return as_text(owner), ends, as_number(fence) or 0, as_number(hops) or 0, as_text(checkpoint)


@asynccontextmanager
async def open_sqlite(name: str, *, clock: Clock = time.time, **connection: str | None) -> AsyncIterator[Ledger]:
    """Open the SQLite ledger in the file `name`. A missing file is created; a missing directory is an error.

    clock: returns seconds since the epoch, by which leases expire. connection: to AWS, which this ledger does not need.
    """
    path = file_of(name)
    executor = ThreadPoolExecutor(1, thread_name_prefix="ledger")
    loop = asyncio.get_running_loop()
    try:
        opened = await loop.run_in_executor(executor, guarded, path, lambda: connect(path))
        try:
            yield SqliteLedger(path, opened, executor, clock)
        finally:
            await loop.run_in_executor(executor, opened.close)
    finally:
        executor.shutdown(wait=False)
