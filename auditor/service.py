"""The hashing worker as a function: SQS batches in, the ids of failed messages out; settings: environment, file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from auditor.config import load
from auditor.errors import UsageError
from auditor.processing import Processor, leave
from auditor.queues import Received, SqsQueue
from auditor.settings import ENV_PREFIX, Settings, environment_layer, resolve
from auditor.tasks import together
from auditor.worker import processor_of


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
        done = await together(_handle(processor, record) for record in records)
        return {"batchItemFailures": [{"itemIdentifier": name} for name in done if name is not None]}

    async def close(self) -> None:
        self._processor = None
        await self._stack.aclose()

    async def _open(self) -> Processor:
        return await self._stack.enter_async_context(processor_of(read_settings(self._environ)))


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Variables, then auditor.toml, then defaults; raises UsageError naming what is wrong, or missing."""
    file, tables = load(environ.get("AUDITOR_CONFIG") or None)
    layers = [environment_layer(environ), file]
    for name in ("queue", "ledger"):
        if not any(layer.values.get(name) for layer in layers):
            raise UsageError(f"{ENV_PREFIX}{name.upper()} is not set: the hashing function needs it")
    return resolve(layers, tables)


def _received(record: Mapping[str, Any]) -> Received:
    """A record as Lambda hands it on (AWS Lambda developer guide, "Using Lambda with Amazon SQS")."""
    count = record.get("attributes", {}).get("ApproximateReceiveCount", "1")
    return Received(record["messageId"], record["receiptHandle"], record["body"], int(count))


async def _handle(processor: Processor, record: Mapping[str, Any]) -> str | None:
    """The message's id when it failed; then it comes again when its backoff ends, not when the timeout does."""
    received = _received(record)
    processed = await processor.process(received)
    if processed.hide is None:
        return None
    queue = processor.queue
    if isinstance(queue, SqsQueue):
        queue = queue.beside(record.get("eventSourceARN", ""))  # ours, or that of S3's notifications
    await leave(queue, received, processed.hide)
    return received.id
