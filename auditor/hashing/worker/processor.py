"""Process one queue message: hash its objects, record the digests, and send failed objects to the queue again or to the
dead-letter queue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final

from msgspec.structs import replace

from auditor.aio.backoff import backoff
from auditor.aio.stop import Stop
from auditor.aws.sqs import MAX_DELAY, Outgoing, Queue, Received
from auditor.errors import AuditorError, CredentialsError, MessageError, QueueError
from auditor.hashing.digest.result import Failed
from auditor.hashing.outage import LedgerPatience
from auditor.hashing.queue.message import HashMessage, pack
from auditor.hashing.queue.notification import Noticed, Removed, decode_notification, drop_superseded
from auditor.hashing.queue.send import deliver, group_of, outgoing
from auditor.hashing.worker.counts import Counts, Processed
from auditor.hashing.worker.dead_letters import dead_letters, given_up, log_failures
from auditor.hashing.worker.message_hasher import MessageHasher, MessageResult
from auditor.hashing.worker.options import WorkerOptions
from auditor.ledger.base import Ledger
from auditor.logs import bound
from auditor.s3.engines.pool import EnginePool

log = logging.getLogger(__name__)

FINAL: Final = frozenset(
    {"ChecksumMismatch", "DigestConflict", "LedgerFault", "NoCarriedState", "SizeDiffers", "TooManyHops"}
)
"""Error codes of failures that another attempt cannot repair."""

TOO_MANY_RECEIVES: Final = "TooManyReceives"
"""Reason in a dead letter for a message that was received as often as the queue allows, and that no worker finished."""
RECEIVES: Final = 5
"""Number of times that a message may be received, assumed for a queue whose redrive policy is unknown."""
RESERVE: Final = 2
"""Number of receipts of each message that are reserved for workers that die.

A message with no more than these receipts left is not hidden and received again. It is sent as a new message, because
SQS would move it to the dead-letter queue without a reason."""


class Processor:
    """Processes queue messages, several at once. A message may come twice: the ledger then has the digests of its
    objects.

    clock: returns seconds since the epoch, by which leases expire.
    """

    def __init__(
        self,
        queue: Queue,
        dead_letters: Queue | None,
        ledger: Ledger,
        engines: EnginePool[str],
        options: WorkerOptions,
        *,
        executor: Executor | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.queue = queue
        self._dead_letters = dead_letters
        self._ledger = ledger
        self._options = options
        self._sleep = sleep
        self._patience = LedgerPatience(sleep)
        self._hasher = MessageHasher(ledger, engines, options, executor, sleep, clock)

    async def process(self, received: Received, stop: Stop | None = None) -> Processed:
        """Process one message, and return the result. An error becomes a part of the result, so that no message fails
        another one.

        stop: once it is set, large objects are saved and sent to the queue again; None if nothing can stop the work.
        """
        stop = Stop() if stop is None else stop
        try:
            if self._is_last(received):
                return await self._give_up(received, TOO_MANY_RECEIVES)
            if self._options.has_deadline:
                return await self._process(received, stop)
            return await self._patience("process", partial(self._process, received, stop), stop)
        except AuditorError as error:  # the ledger, the credentials or the settings fail: every message would meet it
            return await self.come_again(received, error)
        except Exception:
            log.exception("message %s is left on the queue, because the worker failed", received.id)
            return Processed(Counts(messages=1, failed=1), retry_after=self.backoff(received.receive_count))

    def _is_last(self, received: Received) -> bool:
        """True if SQS will not deliver the message again, but will move it to the dead-letter queue without a reason.

        False for a queue that allows only one or two receipts, because the hashing needs these receipts.
        """
        limit = self.queue.max_receives
        return limit is not None and limit > RESERVE and received.receive_count >= limit

    def _has_spare(self, received: Received) -> bool:
        """True if the message may be hidden and received once more, with receipts left in reserve after that."""
        return received.receive_count + RESERVE < (self.queue.max_receives or RECEIVES)

    async def come_again(self, received: Received, doom: AuditorError) -> Processed:
        """Let a message come again after a pause. An error (`doom`) stopped its processing, which is not the message's
        fault.

        The message is hidden during the pause. If too few receipts are left, a copy of the message is sent instead,
        with a new age and no receipts.
        """
        log.error("message %s will be redelivered: %s", received.id, doom)
        seconds = self.backoff(received.receive_count)
        if not self._has_spare(received):
            try:
                copy = Outgoing(received.body, delay=seconds, group=_group(received))
                await deliver(self.queue, [copy], sleep=self._sleep)
            except AuditorError as error:
                log.warning("message %s is left on the queue: %s", received.id, error)
            else:
                return Processed(Counts(messages=1), due=seconds, doom=doom)
        return Processed(Counts(messages=1), retry_after=seconds, doom=doom)

    async def _process(self, received: Received, stop: Stop) -> Processed:
        try:
            notification = decode_notification(received.body, self._options.algorithms)
        except MessageError as error:
            log.warning("message %s is malformed: %s", received.id, error)
            return await self._give_up(received, str(error))
        notification = await drop_superseded(self._ledger, notification)
        results: list[MessageResult] = []
        for message in notification.messages:
            with bound(run=message.run, bucket=message.bucket):
                result = await self._hasher.hash(message, stop)
                log.info("%s", result.sentence())
            results.append(result)
        return await self._settle(received, results, Counts(messages=1, superseded=notification.superseded))

    def backoff(self, failures: int) -> int:
        """Return a random number of seconds to wait after `failures` failures. The limit of the number doubles with
        each failure, up to 900.
        """
        return round(backoff(failures - 1, self._options.retry_base, MAX_DELAY))

    async def _settle(self, received: Received, results: Sequence[MessageResult], counts: Counts) -> Processed:
        """Send failed and unfinished objects to the queue or to the dead-letter queue, and return the result of the
        received message.

        Dead letters are sent first. If that fails, nothing else is sent. The received message then comes again as a
        whole, and each time would add a copy of its objects.
        """
        counts = sum((one.counts for one in results), counts)
        waiting = [one for result in results for one in result.waiting]
        alone = sum(len(one.message.tasks) for one in results) == 1
        if waiting and alone and received.receive_count == 1 and self._has_spare(received):
            seconds = waiting[0].seconds
            return Processed(counts + Counts(waiting=1), retry_after=seconds, due=seconds)
        letters: list[Outgoing] = []
        again: list[Outgoing] = []
        given_up = resent = 0
        for result in results:
            log_failures(received, result.message, result.failed)
            final = [one for one in result.failed if self._is_final(one)]
            rest = [one for one in result.failed if not self._is_final(one)]
            letters += dead_letters(received, result.message, final)
            again += self._again(result, rest)
            given_up += len(final)
            resent += len(rest)
        if await self._send(received, letters, again):
            continued = sum(len(one.continued) for one in results)
            counts += Counts(failed=given_up, dead_lettered=given_up, resent=resent)
            counts += Counts(continued=continued, waiting=len(waiting))
            return Processed(counts, due=max((one.delay for one in again), default=0))
        counts += Counts(failed=given_up + resent)
        return Processed(counts, retry_after=self.backoff(received.receive_count))

    async def _send(self, received: Received, letters: Sequence[Outgoing], again: Sequence[Outgoing]) -> bool:
        """Send messages to the dead-letter queue, and then messages with objects to hash again to the queue.

        Return True if the queues have accepted all of them.
        """
        try:
            for queue, messages in ((self._dead_letters, letters), (self.queue, again)):
                if messages and queue is None:
                    return False
                if messages and queue is not None:
                    await deliver(queue, messages, sleep=self._sleep)
        except QueueError as error:
            log.warning("message %s is left on the queue: %s", received.id, error)
            return False
        return True

    async def _give_up(self, received: Received, reason: str) -> Processed:
        """Send a received message unchanged to the dead-letter queue, with the reason, and return the message's
        result.
        """
        if await self._send(received, [given_up(received, reason, _group(received))], []):
            return Processed(Counts(messages=1, failed=1, dead_lettered=1))
        return Processed(Counts(messages=1, failed=1), retry_after=self.backoff(received.receive_count))

    def _is_final(self, failed: Failed) -> bool:
        """True if the failed object is not tried again: no attempt can succeed, or the object has had all its
        attempts, or in an outage of S3 all its hops.
        """
        if failed.outage:
            return failed.task.hops >= self._options.max_hops
        return failed.code in FINAL or failed.task.attempts + 1 >= self._options.max_attempts

    def _again(self, result: MessageResult, failed: Sequence[Failed]) -> list[Outgoing]:
        """Return messages with the objects to hash again.

        Failed objects come after a pause that grows with the number of attempts. An outage of S3 uses up no attempt. It
        counts as a hop, and the pause grows with the number of hops, so that the worker's 200 hops last for a day and a
        half. Unfinished objects come at once. An object whose lease another worker has comes in a message of its own,
        when the lease may be free.
        """
        message = result.message
        tried = [replace(one.task, attempts=one.task.attempts + 1) for one in failed if not one.outage]
        refused = [replace(one.task, hops=one.task.hops + 1) for one in failed if one.outage]
        parts = partial(pack, message.run, message.bucket, message.algorithms)
        return [
            *(outgoing(part, self.backoff(max(task.attempts for task in part.tasks))) for part in parts(tried)),
            *(outgoing(part, self.backoff(max(task.hops for task in part.tasks))) for part in parts(refused)),
            *map(outgoing, parts(result.continued)),
            *(outgoing(replace(message, tasks=(one.task,)), min(MAX_DELAY, one.seconds)) for one in result.waiting),
        ]


def _group(received: Received) -> str:
    """Return the MessageGroupId of a received message, by the first bucket that it names; "" if it is malformed."""
    try:
        found = decode_notification(received.body)
    except MessageError:
        return ""
    named: list[HashMessage | Noticed | Removed] = [*found.messages, *found.notices, *found.removals]
    return group_of(named[0].bucket) if named else ""


async def leave(queue: Queue, received: Received, seconds: int) -> None:
    """Let a received message come again after `seconds`.

    If the call fails, the message comes again when its visibility timeout ends.
    """
    try:
        await queue.hide(received.receipt, seconds)
    except (QueueError, CredentialsError) as error:
        log.warning("message %s keeps its visibility timeout: %s", received.id, error)
