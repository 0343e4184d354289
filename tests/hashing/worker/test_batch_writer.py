"""Digests that arrive together are written together; a conflict or a failure concerns its own callers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from auditor.errors import DigestConflict, LedgerError
from auditor.hashing.digest.result import Hashed
from auditor.hashing.queue.message import HashTask
from auditor.hashing.worker.message_hasher import BatchWriter
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry, Ledger
from auditor.model.object import ObjectRef
from tests.support.fakes.hashing import until
from tests.support.fakes.ledger import Hooked


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as opened:
        yield opened


def hashed(number: int, digest: str = "") -> Hashed:
    return Hashed(HashTask(f"key-{number}", None, "etag", 1), {"sha256": digest or f"{number:064x}"})


class Slow(Hooked):
    """Each write waits for `free`. batches: how many entries each had."""

    def __init__(self, inner: Ledger) -> None:
        super().__init__(inner)
        self.free = asyncio.Event()
        self.batches: list[int] = []

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        self.batches.append(len(entries))
        await self.free.wait()
        return await super().record_many(entries)


async def known(ledger: Ledger, count: int) -> list[str]:
    refs = [ObjectRef(f"key-{number}", "etag", 1, "") for number in range(count)]
    return [found.get("sha256", "") for found in await ledger.known("bucket", refs, ["sha256"])]


async def test_entries_that_arrive_during_a_write_are_written_together(ledger: Ledger) -> None:
    slow = Slow(ledger)
    recording = BatchWriter(slow)
    async with asyncio.TaskGroup() as group:
        writes = [group.create_task(recording.record("bucket", hashed(number))) for number in range(50)]
        await until(lambda: len(slow.batches) == 1)
        slow.free.set()
    assert slow.batches == [1, 49]
    assert [write.result() for write in writes] == [True] * 50
    assert await known(ledger, 50) == [f"{number:064x}" for number in range(50)]


async def test_conflict_concerns_its_own_object_alone(ledger: Ledger) -> None:
    recording = BatchWriter(ledger)
    await recording.record("bucket", hashed(1))
    found = await asyncio.gather(*(recording.record("bucket", hashed(number, "ff" * 32)) for number in range(3)))
    assert [type(one).__name__ for one in found] == ["bool", "DigestConflict", "bool"]
    assert await known(ledger, 3) == ["ff" * 32, f"{1:064x}", "ff" * 32]


async def test_failed_write_is_raised_to_its_own_callers_only(ledger: Ledger) -> None:
    broken = [LedgerError("the ledger is gone")] * 3

    def hook(name: str) -> None:
        if broken:
            raise broken.pop()

    recording = BatchWriter(Hooked(ledger, hook))
    found = await asyncio.gather(
        *(recording.record("bucket", hashed(number)) for number in range(3)), return_exceptions=True
    )
    assert [str(error) for error in found] == ["the ledger is gone"] * 3
    await recording.record("bucket", hashed(3))
    assert await known(ledger, 4) == ["", "", "", f"{3:064x}"]


async def test_cancelled_while_others_wait_leaves_their_entries_to_them(ledger: Ledger) -> None:
    slow = Slow(ledger)
    recording = BatchWriter(slow)
    first = asyncio.create_task(recording.record("bucket", hashed(0)))
    await until(lambda: len(slow.batches) == 1)
    others = [asyncio.create_task(recording.record("bucket", hashed(number))) for number in (1, 2)]
    await asyncio.sleep(0)
    first.cancel()
    slow.free.set()
    await asyncio.gather(*others)
    assert first.cancelled() or first.done()
    assert (await known(ledger, 3))[1:] == [f"{1:064x}", f"{2:064x}"]
