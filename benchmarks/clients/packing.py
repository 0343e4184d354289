"""Hash small objects: many in a message by our worker, and one in a message by the article's function."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from auditor.aws.sqs import BATCH, Outgoing, Queue, Received, RefusedEntry, batches
from benchmarks.meter import MIB, Meter
from benchmarks.server.objects import BUCKET, SIZED

ALGORITHM: Final = "sha1"
ETAG: Final = "5" * 32
"""The ETag of every sized object of the server."""
RUN: Final = "20260102T030405Z-0a1b2c"


class CountedQueue:
    """A queue in memory that counts the requests to SQS and Lambda by operation.

    It plays Lambda's poller: a receive, an invocation and a delete for each batch of `batch` messages.
    """

    def __init__(self, batch: int = 1) -> None:
        self.max_receives: int | None = None
        self.requests: Counter[str] = Counter()
        self.messages: deque[str] = deque()
        self._batch = batch

    async def send(self, entries: Sequence[Outgoing]) -> list[RefusedEntry]:
        for part in batches(entries):
            self.requests["SendMessageBatch"] += 1
            self.messages += [entry.body for entry in part]
        return []

    async def receive(self, limit: int, *, wait: int, visibility: int) -> list[Received]:
        found = [self.messages.popleft() for _ in range(min(self._batch, limit, len(self.messages)))]
        if found:
            self.requests.update(("ReceiveMessage", "Invoke", "DeleteMessageBatch"))
        return [Received(str(number), "", body, 1) for number, body in enumerate(found)]

    async def delete(self, receipts: Sequence[str]) -> None:
        """Deleting is counted with receiving: Lambda's poller does both."""

    async def hide(self, receipt: str, seconds: int) -> None:
        raise RuntimeError("a message could not be worked on")

    async def dead_letter_queue(self) -> Queue | None:
        return None


def _key(size: int, number: int) -> str:
    return f"{SIZED}{size}/part-{number:08}.parquet"


def ours(meter: Meter, *, url: str, size: int, objects: int) -> dict[str, Any]:
    """Measure our dispatcher, which fills the queue, and our worker's processor, which empties it: with its defaults, a
    ledger and one invocation a message.
    """
    from auditor.aio import loop as loops
    from auditor.aws.connection import Connection
    from auditor.hashing.digest.object import hash_threads
    from auditor.hashing.queue.send import Dispatcher
    from auditor.hashing.worker.options import WorkerOptions
    from auditor.hashing.worker.processor import Processor
    from auditor.ledger import open_ledger
    from auditor.model.object import ObjectRef
    from auditor.s3.engines import DEFAULT_ENGINE, ENGINES
    from auditor.s3.engines.base import Engine
    from auditor.s3.engines.pool import EnginePool

    connection = Connection(bucket=BUCKET, region="us-east-1", endpoint_url=url, concurrency=16)

    @asynccontextmanager
    async def engine(bucket: str) -> AsyncIterator[Engine]:
        async with ENGINES[DEFAULT_ENGINE](connection) as opened:
            yield opened

    async def measure(folder: Path) -> CountedQueue:
        queue, settings = CountedQueue(), WorkerOptions(algorithms=(ALGORITHM,))
        async with open_ledger(f"sqlite:{folder / 'ledger.db'}") as ledger, EnginePool(engine) as engines:
            with hash_threads() as threads:
                processor = Processor(queue, None, ledger, engines, settings, executor=threads)
                with meter.measuring():
                    dispatcher = Dispatcher(queue, RUN, BUCKET, (ALGORITHM,))
                    for number in range(objects):
                        dispatcher.add([ObjectRef(_key(size, number), ETAG, size, "")])
                        await dispatcher.send()
                    await dispatcher.close()
                    hashed = 0
                    while received := await queue.receive(BATCH, wait=0, visibility=0):
                        done = await asyncio.gather(*map(processor.process, received))
                        hashed += sum(one.counts.hashed for one in done)
        if hashed != objects:
            raise RuntimeError(f"hashed {hashed} of {objects} objects")
        return queue

    with tempfile.TemporaryDirectory() as folder:
        return {"requests": dict(loops.run(measure(Path(folder))).requests)}


def article(meter: Meter, *, url: str, size: int, objects: int) -> dict[str, Any]:
    """One message and one invocation an object: get it, read a chunk, update. No digest is recorded."""
    import boto3

    client = boto3.client("s3", endpoint_url=url)
    queue = CountedQueue()

    async def fill() -> None:
        await queue.send([Outgoing(_key(size, number)) for number in range(objects)])

    async def next_one() -> list[Received]:
        return await queue.receive(BATCH, wait=0, visibility=0)

    with asyncio.Runner() as runner, meter.measuring():
        runner.run(fill())
        while received := runner.run(next_one()):
            for one in received:
                body = client.get_object(Bucket=BUCKET, Key=one.body)["Body"]
                digest = hashlib.new(ALGORITHM)
                while piece := body.read(20 * MIB):
                    digest.update(piece)
                digest.hexdigest()
    return {"requests": dict(queue.requests)}
