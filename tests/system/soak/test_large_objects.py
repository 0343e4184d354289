"""An object of 3 GB over at least twenty forced deadlines has the digests of one pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from awscrt import checksums

from auditor.aio.stop import Stop
from auditor.aws.connection import Connection
from auditor.hashing.digest.object import hash_threads
from auditor.hashing.queue.message import HashMessage, HashTask, encode
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger import open_ledger
from auditor.model.object import ObjectRef
from auditor.s3.engines import ENGINES
from auditor.s3.engines.pool import EnginePool
from tests.support.fakes.hashing import MemoryQueue
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StoredObjects, StubObject

SIZE = 3_000_000_000
DEADLINES = 20
MIB = 1024 * 1024
ALGORITHMS = ("sha256", "sha1", "md5", "crc64nvme")
PLAIN = ALGORITHMS[:3]


@dataclass(slots=True, kw_only=True)
class Counted(StubObject):
    """sent: bytes that the stub has read of it, and so put on the wire."""

    sent: int = 0

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        piece = StubObject.read(self, start, length)
        self.sent += len(piece)
        return piece


class AtBytes(Stop):
    """Set once so many bytes more were sent: a deadline."""

    def __init__(self, item: Counted, count: int) -> None:
        super().__init__()
        self._item = item
        self._end = item.sent + count
        self.is_set = self.__bool__

    def __bool__(self) -> bool:
        return self._item.sent >= self._end


def one_pass(item: StubObject) -> dict[str, str]:
    """Of the same bytes, with nothing of ours."""
    states, crc = {name: hashlib.new(name) for name in PLAIN}, 0
    for start in range(0, SIZE, 16 * MIB):
        piece = item.read(start, min(16 * MIB, SIZE - start))
        for state in states.values():
            state.update(piece)
        crc = checksums.crc64nvme(piece, crc)
    return {name: state.hexdigest() for name, state in states.items()} | {"crc64nvme": f"{crc:016x}"}


@pytest.mark.parametrize("streams", [1, None], ids=["one stream", "auto"])
async def test_three_gigabytes_over_twenty_deadlines(stub: StubServer, tmp_path: Path, streams: int | None) -> None:
    item = Counted(key="huge", body=None, size=SIZE)
    objects = StoredObjects()
    objects.add(item)
    stub.world.buckets["audited"].objects = objects
    queue = MemoryQueue(MemoryQueue())
    queue.put(encode(HashMessage("run", "audited", ALGORITHMS, (HashTask("huge", None, item.etag, SIZE),))))
    connection = Connection(bucket="audited", region="us-east-1", endpoint_url=stub.url, concurrency=16)
    engines: EnginePool[str] = EnginePool(lambda bucket: ENGINES["direct"](connection))
    counts = Counts()
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger, engines:
        with hash_threads() as threads:
            settings = WorkerOptions(has_deadline=True, streams=streams)
            while queue.left:
                # Each in a processor of its own, as in another invocation.
                processor = Processor(queue, queue.dead_letters, ledger, engines, settings, executor=threads)
                (received,) = await queue.receive(1, wait=0, visibility=5400)
                done = await processor.process(received, AtBytes(item, SIZE // (DEADLINES + 4)))
                assert done.retry_after is None
                await queue.delete([received.receipt])
                counts += done.counts
        (found,) = await ledger.known("audited", [ObjectRef("huge", item.etag, SIZE, "")], ALGORITHMS)
    assert counts.continued >= DEADLINES
    assert (counts.hashed, counts.failed) == (1, 0)
    assert found == one_pass(item)
