"""The hashing worker as a function: SQS batches in, the ids of failed messages out; settings from the environment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final

from auditor.engines import DEFAULT_ENGINE, ENGINES
from auditor.engines.interface import Connection, Engine
from auditor.errors import UsageError
from auditor.hashing import CHUNK_SIZE, MIB
from auditor.home import open_at_home
from auditor.messages import ALGORITHMS
from auditor.processing import HashSettings, Processor, leave
from auditor.queues import Received
from auditor.tasks import together
from auditor.worker import open_processor

log = logging.getLogger(__name__)

MAX_CHUNK_MIB: Final = 1024


class HashingService:
    """Lives as long as its process; opens its clients with the first event, and keeps them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._stack = AsyncExitStack()
        self._processor: Processor | None = None

    async def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """An SQS event -> `{"batchItemFailures": [{"itemIdentifier": ID}, ..]}`; raises for wrong settings."""
        records = event.get("Records")
        if not isinstance(records, list):
            raise UsageError("the event has no Records: this function takes SQS batches only")
        if self._processor is None:
            self._processor = await self._open()
        processor = self._processor
        done = await together(_handle(processor, _received(record)) for record in records)
        return {"batchItemFailures": [{"itemIdentifier": name} for name in done if name is not None]}

    async def close(self) -> None:
        self._processor = None
        await self._stack.aclose()

    async def _open(self) -> Processor:
        environ = self._environ
        settings = hash_settings(environ)
        name = environ.get("AUDITOR_ENGINE", DEFAULT_ENGINE)
        if name not in ENGINES:
            raise UsageError(f"AUDITOR_ENGINE {name!r} is not an engine: there are {', '.join(ENGINES)}")

        def open_engine(bucket: str) -> AbstractAsyncContextManager[Engine]:
            return open_at_home(name, Connection(bucket=bucket, concurrency=settings.concurrency))

        opening = open_processor(
            _required(environ, "AUDITOR_QUEUE"),
            _required(environ, "AUDITOR_LEDGER"),
            open_engine,
            settings,
            dead_letter_url=environ.get("AUDITOR_DEAD_LETTER_QUEUE") or None,
        )
        return await self._stack.enter_async_context(opening)


def hash_settings(environ: Mapping[str, str]) -> HashSettings:
    """AUDITOR_ALGORITHMS (a list with commas) and AUDITOR_CHUNK_MIB; raises UsageError naming the variable."""
    names = environ.get("AUDITOR_ALGORITHMS", ALGORITHMS[0]).replace(" ", "").split(",")
    if any(name not in ALGORITHMS for name in names):
        raise UsageError(f"AUDITOR_ALGORITHMS {','.join(names)!r} names one that is not known: {', '.join(ALGORITHMS)}")
    mib = environ.get("AUDITOR_CHUNK_MIB", str(CHUNK_SIZE // MIB))
    if not (mib.isascii() and mib.isdecimal() and 1 <= int(mib[:9]) <= MAX_CHUNK_MIB):
        raise UsageError(f"AUDITOR_CHUNK_MIB {mib!r} is not a whole number from 1 to {MAX_CHUNK_MIB}")
    return HashSettings(algorithms=tuple(dict.fromkeys(names)), chunk_size=int(mib) * MIB)


def _required(environ: Mapping[str, str], name: str) -> str:
    if value := environ.get(name):
        return value
    raise UsageError(f"{name} is not set: the hashing function needs it")


def _received(record: Mapping[str, Any]) -> Received:
    """A record as Lambda hands it on (AWS Lambda developer guide, "Using Lambda with Amazon SQS")."""
    count = record.get("attributes", {}).get("ApproximateReceiveCount", "1")
    return Received(record["messageId"], record["receiptHandle"], record["body"], int(count))


async def _handle(processor: Processor, received: Received) -> str | None:
    """The message's id when it failed; then it comes again when its backoff ends, not when the timeout does."""
    processed = await processor.process(received)
    if processed.hide is None:
        return None
    await leave(processor.queue, received, processed.hide)
    return received.id
