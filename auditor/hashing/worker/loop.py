"""The loop of `auditor work`: process queue messages until the queue has been empty for a while, or until a stop."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from msgspec import Struct

from auditor.aio.stop import Stop
from auditor.aio.tasks import task_group
from auditor.aws.sqs import BATCH, Received, open_queue
from auditor.config.resources import connection_to, ledger_of
from auditor.config.settings import Settings
from auditor.errors import AuditorError, CredentialsError, QueueError
from auditor.hashing.digest.object import hash_threads
from auditor.hashing.digest.streams import connections
from auditor.hashing.limits import CONCURRENCY
from auditor.hashing.worker.counts import Counts, Processed
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor, leave
from auditor.s3.bucket import open_in_its_region
from auditor.s3.calls import RetryPolicy
from auditor.s3.engines.base import Engine, OpenEngine
from auditor.s3.engines.pool import EnginePool

log = logging.getLogger(__name__)
IDLE: Final = 20.0
"""Seconds for which the queue must be empty before the worker ends."""
VISIBILITY: Final = 120
"""Seconds that SQS hides a received message from other workers. The worker renews this time every 40 s while it hashes
the message's objects."""


class Pace(Struct, frozen=True, kw_only=True):
    """The limits and intervals of a worker's loop."""

    messages: int = CONCURRENCY
    """Largest number of messages that are processed at the same time."""
    idle: float = IDLE
    """Seconds for which the queue must be empty before the worker ends."""
    poll: int = 5
    """Seconds for which one receive call waits for messages."""
    visibility: int = VISIBILITY
    """Seconds that SQS hides a received message from other workers."""
    heartbeat: float = VISIBILITY / 3
    """Seconds from one renewal of the visibility to the next."""


class Worker:
    """Receives queue messages, processes them, and deletes them. Call run() once, and stop() on the same event loop.

    counts: the counts so far. in_hand: number of messages that are being processed. heard: True once the queue has
    answered a call.
    """

    def __init__(
        self, processor: Processor, pace: Pace | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.counts = Counts()
        self.in_hand = 0
        self.heard = False
        self._processor = processor
        self._queue = processor.queue
        self._pace = pace or Pace()
        self._clock = clock
        self._freed = asyncio.Event()
        self._stop = Stop()
        self._idle_since = 0.0
        self._doom: AuditorError | None = None

    def stop(self) -> None:
        """Ask run() to end: it finishes small objects, and sends large ones to the queue again with a checkpoint in the
        ledger. All other messages stay on the queue.
        """
        self._stop.set("the worker is to stop")

    async def run(self) -> Counts:
        """Process messages until the queue has been empty for `idle` seconds, and return the counts.

        The idle time begins when the last message that this worker has sent can be received. A QueueError, LedgerError
        or CredentialsError that stops all work is raised after the messages in hand are finished.
        """
        self._idle_since = self._clock()
        async with task_group() as group:
            while not self._stop and await self._has_room():
                for received in await self._receive():
                    self.in_hand += 1
                    group.create_task(self._handle(received))
        if self._doom is not None:
            raise self._doom
        return self.counts

    async def _has_room(self) -> bool:
        """Wait until fewer messages are in hand than the limit allows. Return False if the worker must stop."""
        while self.in_hand >= self._pace.messages:
            self._freed.clear()
            await self._freed.wait()
        return not self._stop

    async def _receive(self) -> list[Received]:
        """Receive and return messages. Stop the worker if this fails, or if the queue has been empty for `idle`
        seconds.
        """
        most = min(BATCH, self._pace.messages - self.in_hand)
        seconds_left = self._idle_since + self._pace.idle - self._clock()
        wait = self._pace.poll if self.in_hand else max(0, min(self._pace.poll, math.ceil(seconds_left)))
        try:
            batch = await self._queue.receive(most, wait=wait, visibility=self._pace.visibility)
        except AuditorError as error:
            self._give_up(error)
            return []
        self.heard = True
        if batch and self._stop:
            for received in batch:
                await leave(self._queue, received, 0)
            return []
        if not batch and not self.in_hand and self._clock() >= self._idle_since + self._pace.idle:
            self.stop()
        return batch

    async def _handle(self, received: Received) -> None:
        try:
            processed = await self._with_heartbeat(received)
            self.counts += processed.counts
            if processed.doom is not None:
                self._give_up(processed.doom)
            await self._finish(received, processed)
        finally:
            self.in_hand -= 1
            self._freed.set()

    async def _with_heartbeat(self, received: Received) -> Processed:
        finished = asyncio.Event()
        async with task_group() as group:
            group.create_task(self._heartbeat(received, finished))
            try:
                return await self._processor.process(received, self._stop)
            finally:
                finished.set()

    async def _heartbeat(self, received: Received, finished: asyncio.Event) -> None:
        """Keep the message hidden from other workers until `finished` is set, by a call at each interval.

        Such a call is never cancelled, because it may still reach SQS later, and undo the effect of the call that
        follows.
        """
        while True:
            try:
                async with asyncio.timeout(self._pace.heartbeat):
                    await finished.wait()
                return
            except TimeoutError:
                await leave(self._queue, received, self._pace.visibility)

    async def _finish(self, received: Received, processed: Processed) -> None:
        # The idle time begins when the re-sends can be received, because this worker should take them.
        self._idle_since = max(self._idle_since, self._clock() + processed.due)
        if processed.retry_after is not None:
            await leave(self._queue, received, processed.retry_after)
            return
        try:
            await self._queue.delete([received.receipt])
        except (QueueError, CredentialsError) as error:
            log.warning("message %s is done but will be redelivered: %s", received.id, error)

    def _give_up(self, error: AuditorError) -> None:
        """Stop the worker because of an error. run() raises the first of such errors."""
        self._doom = self._doom or error
        self.stop()


@asynccontextmanager
async def open_processor(
    settings: Settings, options: WorkerOptions, open_engine: OpenEngine[str] | None = None
) -> AsyncIterator[Processor]:
    """Open the queues, the ledger and the engines, and yield a Processor that uses them.

    The settings must name a queue and a ledger. open_engine: opens the engine for a bucket; None for the engine that
    the settings name.
    """

    def open_in_settings(bucket: str) -> AbstractAsyncContextManager[Engine]:
        connection = connection_to(bucket, settings, connections(options.concurrency, options.streams))
        # An outage must not use up a message's receipts: the worker waits as long for the first answer as for others.
        return open_in_its_region(settings.engine, connection, RetryPolicy(first_seconds=RetryPolicy().seconds))

    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        opened = partial(open_queue, region=settings.region, profile=settings.profile)
        queue = await enter(opened(settings.queue or ""))
        named = settings.dead_letter_queue
        dead_letters = await enter(opened(named)) if named else await queue.dead_letter_queue()
        ledger = await enter(ledger_of(settings))
        executor = hash_threads()
        stack.callback(executor.shutdown, wait=False)
        engines = await enter(EnginePool(open_engine or open_in_settings))
        yield Processor(queue, dead_letters, ledger, engines, options, executor=executor)
