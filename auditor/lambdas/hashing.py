"""The hashing worker as a Lambda function. It gets batches of SQS messages, and returns the IDs of the failed
messages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack
from typing import Any

from auditor.aio.tasks import together
from auditor.aws.sqs import SqsQueue
from auditor.config.file import load_settings
from auditor.errors import AuditorError, RunStopped
from auditor.hashing.worker.loop import open_processor
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor, leave
from auditor.lambdas.deadline import DEADLINE, FunctionStop, in_time, stop_before_deadline
from auditor.lambdas.sqs_batch import answer_of, message_id, received_of, records_of
from auditor.logs import bound

log = logging.getLogger(__name__)


class HashingFunction:
    """The Lambda function that hashes objects. One instance handles all events that its process gets.

    The first event opens the clients, which stay open. stopping: makes the stop that comes shortly before the deadline,
    from the seconds left.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        stopping: Callable[[float | None], AbstractContextManager[FunctionStop]] = stop_before_deadline,
    ) -> None:
        """Keep the environment and `stopping`, and open nothing."""
        self._environ = environ
        self._stopping = stopping
        self._stack = AsyncExitStack()
        self._processor: Processor | None = None

    async def handle(
        self, event: object, request: str | None = None, seconds_left: float | None = None
    ) -> dict[str, Any]:
        """Process the messages of an SQS event, and return the IDs of those that SQS must deliver again.

        The result is `{"batchItemFailures": [{"itemIdentifier": ID}, ..]}`. request: ID of the invocation, for the
        logs. seconds_left: time until the deadline; None if there is no deadline. Raises AuditorError if the event or a
        setting is wrong, or if the queue or the ledger cannot be opened.
        """
        with bound(requestId=request), self._stopping(seconds_left) as stop:
            try:
                records = records_of(event)
                if self._processor is None:
                    silent = f"the queue or the ledger did not answer before the end ({DEADLINE})"
                    self._processor = await in_time(self._open(), stop.flight(), silent)
            except AuditorError as error:
                log.error("the invocation failed: %s", error)
                raise
            processor = self._processor
            done = await together(_handle(processor, record, stop) for record in records)
            failed = [name for name in done if name is not None]
            log.info("%d messages, of which %d will be redelivered", len(records), len(failed))
        return answer_of(failed)

    async def close(self) -> None:
        self._processor = None
        await self._stack.aclose()

    async def _open(self) -> Processor:
        settings = load_settings(environ=self._environ, needed=("queue", "ledger"), function="hashing", judges=False)
        return await self._stack.enter_async_context(
            open_processor(settings, WorkerOptions.of(settings, has_deadline=True))
        )


async def _handle(processor: Processor, record: Any, stop: FunctionStop) -> str | None:
    """Process the message in a record. Return the message's ID if SQS must deliver it again later; None if it
    is done.
    """
    received = received_of(name := message_id(record), record)
    if received is None:
        log.warning("message %s has no body or no receiptHandle: it is left on the queue", name)
        return name
    async with stop.telling() as limit:
        async with stop.sending() as cut:
            processed = await processor.process(received, stop)
        if cut.expired():
            silent = RunStopped(f"the ledger, S3 or the queue did not answer before the end ({stop.reason})")
            processed = await processor.come_again(received, silent)
        if processed.retry_after is None:
            return None
        queue, arn = processor.queue, record.get("eventSourceARN")
        if isinstance(queue, SqsQueue) and isinstance(arn, str):
            queue = queue.beside(arn)  # the audits' queue, or the queue of S3's notifications
        await leave(queue, received, processed.retry_after)
    if limit.expired():
        log.warning("message %s keeps its visibility timeout: the queue did not answer", name)
    return name
