"""The worker processes of a chaos campaign: their ledger can refuse, and their clocks are wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from auditor.aws.connection import Connection
from auditor.aws.sqs import open_queue
from auditor.errors import DigestConflict, LedgerError
from auditor.hashing.digest.object import hash_threads
from auditor.hashing.worker.loop import Pace, Worker
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine
from auditor.s3.engines.pool import EnginePool
from tests.support.fakes.ledger import Hooked

KIB: Final = 1024
LARGE: Final = 512 * KIB
VISIBILITY: Final = 6
"""Seconds until the messages of a killed worker come again."""
SETTINGS: Final = WorkerOptions(
    algorithms=("sha256",),
    buffer_size=64 * KIB,
    large=LARGE,
    lease_seconds=2.0,
    save_seconds=0.0,
    retry_base=1.0,
    max_attempts=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The settings of a worker as plain text, for another process. outage: a file; while it exists, the ledger refuses.
    ahead: seconds that the worker's clock runs ahead. function: the worker has a deadline, and does not wait.
    """

    s3: str
    queue: str
    ledger: str
    dynamodb: str | None
    outage: str
    refusals: str
    ahead: float = 0.0
    function: bool = False


class WrongClock(Hooked):
    """A ledger of a machine whose clock is wrong: its entries have the times of that clock."""

    def __init__(self, *values: Any, ahead: float) -> None:
        super().__init__(*values)
        self._ahead = timedelta(seconds=ahead)

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        return await super().record_many([replace(one, hashed_at=self._shifted(one.hashed_at)) for one in entries])

    def _shifted(self, at: str) -> str:
        return (datetime.fromisoformat(at) + self._ahead).isoformat().replace("+00:00", "Z")


def work(places: Places) -> None:
    """Be one worker process, until it is killed."""
    real = time.time_ns
    time.time_ns = lambda: real() + int(places.ahead * 1e9)
    asyncio.run(_work(places))


async def _work(places: Places) -> None:
    def engine(bucket: str) -> AbstractAsyncContextManager[Engine]:
        return ENGINES["direct"](
            Connection(bucket=bucket, region="us-east-1", endpoint_url=places.s3, concurrency=SETTINGS.concurrency)
        )

    def clock() -> float:
        return time.time() + places.ahead

    def refuse(_: str) -> None:
        if Path(places.outage).exists():
            raise LedgerError("the ledger cannot be reached")

    async with AsyncExitStack() as stack:
        queue = await stack.enter_async_context(open_queue(places.queue))
        dead = await queue.dead_letter_queue()
        opening = open_ledger(places.ledger, region="us-east-1", endpoint_url=places.dynamodb, clock=clock)
        ledger = WrongClock(await stack.enter_async_context(opening), refuse, ahead=places.ahead)
        engines = await stack.enter_async_context(EnginePool(engine))
        options = replace(SETTINGS, has_deadline=places.function)
        processor = Processor(queue, dead, ledger, engines, options, executor=hash_threads(), clock=clock)
        pace = Pace(messages=4, idle=3600.0, poll=2, visibility=VISIBILITY, heartbeat=VISIBILITY / 3)
        while True:
            try:
                await Worker(processor, pace).run()
            except LedgerError:  # the next invocation
                _count(places.refusals)
                await asyncio.sleep(0.5)


def _count(file: str) -> None:
    with Path(file).open("a") as counted:
        counted.write(".")
