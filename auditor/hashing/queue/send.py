"""Send objects to the hashing worker's queue, and count the objects that the queue has accepted."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from auditor.aio.backoff import backoff
from auditor.aws.sqs import BATCH, Outgoing, Queue, RefusedEntry
from auditor.errors import QueueError
from auditor.hashing.queue.message import HashMessage, HashTask, Packer, encode
from auditor.model.object import AnyVersion

SENDS: Final = 6
"""Largest number of attempts to send a message."""
LONGEST_GROUP: Final = 128
"""Largest number of characters of a MessageGroupId (SQS API Reference, SendMessageBatchRequestEntry)."""

Sleep = Callable[[float], Awaitable[None]]


def outgoing(message: HashMessage, delay: int = 0, attributes: Mapping[str, str] | None = None) -> Outgoing:
    """Return a message to send, in the group of its bucket.

    delay: seconds until a worker can receive it. attributes: SQS message attributes, by name; None for none.
    """
    return Outgoing(encode(message), delay, attributes or {}, group_of(message.bucket))


def group_of(bucket: str) -> str:
    """Return the MessageGroupId of a bucket's messages: its name, or the SHA-256 (hex) of a name that is too long."""
    return bucket if len(bucket) <= LONGEST_GROUP else hashlib.sha256(bucket.encode()).hexdigest()


class Dispatcher:
    """Sends objects of one bucket to the queue, packed into messages, ten messages at a time. Several asyncio tasks may
    use it together.

    queued: number of objects in the messages that the queue has accepted.
    """

    def __init__(
        self, queue: Queue, run: str, bucket: str, algorithms: Sequence[str], *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.queued = 0
        self._queue = queue
        self._packer = Packer(run, bucket, algorithms)
        self._ready: list[HashMessage] = []
        self._unsent: tuple[HashTask, ...] | None = None
        self._sending = asyncio.Lock()
        self._sleep = sleep

    def add(self, objects: Iterable[AnyVersion]) -> None:
        """Add objects, and send nothing yet."""
        for one in objects:
            self._ready += self._packer.add(HashTask.of(one))
        self._unsent = None

    async def send(self) -> None:
        """Send the complete messages if there are ten. Raises QueueError if the queue refuses them."""
        if len(self._ready) >= BATCH:
            await self._send()

    @property
    def unsent(self) -> Sequence[HashTask]:
        """The objects that were added, and that the queue has not accepted."""
        if self._unsent is None:
            self._unsent = (*(task for message in self._ready for task in message.tasks), *self._packer.waiting)
        return self._unsent

    async def close(self) -> None:
        """Send all objects that are not sent yet. Raises QueueError if the queue refuses them."""
        self._ready += self._packer.flush()
        await self._send()

    async def _send(self) -> None:
        async with self._sending:
            while self._ready:
                part = self._ready[:BATCH]
                entries = [outgoing(message) for message in part]
                messages = {id(entry): message for entry, message in zip(entries, part, strict=True)}
                await deliver(self._queue, entries, taken=partial(self._taken, messages), sleep=self._sleep)

    def _taken(self, messages: Mapping[int, HashMessage], entry: Outgoing) -> None:
        """Count the objects of a message that the queue has accepted, and take the message off the list of messages to
        send.
        """
        message = messages[id(entry)]
        self.queued += len(message.tasks)
        self._ready = [other for other in self._ready if other is not message]
        self._unsent = None


async def deliver(
    queue: Queue,
    entries: Sequence[Outgoing],
    *,
    taken: Callable[[Outgoing], None] = lambda _: None,
    sends: int = SENDS,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Send messages until the queue has accepted all. Refused messages are sent again, after random pauses that grow.

    taken: called with each accepted message. Raises QueueError if the queue refuses a message as invalid, or still
    refuses it after `sends` attempts.
    """
    pending = list(entries)
    for attempt in range(1, sends + 1):
        refused = await queue.send(pending)
        rest = {id(one.entry) for one in refused}
        for entry in pending:
            if id(entry) not in rest:
                taken(entry)
        if not refused:
            return
        pending = [one.entry for one in refused if not one.sender_fault]
        if len(pending) < len(refused) or attempt == sends:
            raise _refused_for_good(refused, len(entries), attempt)
        await sleep(backoff(attempt, 0.1, 20.0))


def _refused_for_good(refused: Sequence[RefusedEntry], entries: int, attempts: int) -> QueueError:
    codes = ", ".join(sorted({one.code for one in refused}))
    times = "once" if attempts == 1 else f"{attempts} times"
    return QueueError(
        f"the queue refused {len(refused)} of {entries} messages {times} ({codes}): see the queue's policy"
    )
