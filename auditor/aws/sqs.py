"""Call SQS queues. Messages are sent and deleted in batches; errors name the queue and the fix."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct, field

from auditor.aws.client import ThreadedClient, open_client
from auditor.aws.failures import ABSENT, DENIED, explain
from auditor.aws.plain import custom_endpoint, is_web_address
from auditor.errors import CallFailed, QueueError, UsageError
from auditor.model.json_codec import parse_object

log = logging.getLogger(__name__)

BATCH: Final = 10
BATCH_BYTES: Final = 256 * 1024
MAX_DELAY: Final = 900
"""SQS's limit of DelaySeconds."""
THREADS: Final = 8

_REGION: Final = re.compile(r"[a-z]{2,3}(-[a-z]+)+-[0-9]+\Z")
_SERVICE: Final = frozenset({"sqs", "sqs-fips", "queue"})


class Outgoing(Struct, frozen=True):
    """A message to send.

    delay: seconds until a worker can receive it. attributes: SQS message attributes, by name. group: the
    MessageGroupId, of at most 128 characters; "" for none. A standard queue serves its groups by turns, so that the
    backlog of one delays no other (SQS Developer Guide, "Amazon SQS fair queues").
    """

    body: str
    delay: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)
    group: str = ""

    @property
    def size(self) -> int:
        """Number of bytes as SQS counts them: the body, and each attribute's name, type and value."""
        return len(self.body.encode()) + sum(
            len(name.encode()) + len(value.encode()) + len("String") for name, value in self.attributes.items()
        )


class RefusedEntry(Struct, frozen=True):
    """A message that SQS did not accept. sender_fault: True if the message is invalid, so that a retry cannot help."""

    entry: Outgoing
    code: str
    sender_fault: bool


class Received(Struct, frozen=True):
    """A received message.

    receipt: the handle to delete or hide it. receive_count: how often it has been received, this time included.
    """

    id: str
    receipt: str
    body: str
    receive_count: int


class Queue(Protocol):
    """The interface of a message queue. Its methods raise QueueError if the queue cannot be used.

    max_receives: how often a message can be received before the queue moves it to its dead-letter queue. It is None
    until dead_letter_queue() finds it out.
    """

    max_receives: int | None

    async def send(self, entries: Sequence[Outgoing]) -> list[RefusedEntry]:
        """Send all messages, in as few batches as SQS allows. Return the messages that SQS refused."""
        ...

    async def receive(self, limit: int, *, wait: int, visibility: int) -> list[Received]:
        """Receive up to `limit` messages, but 10 at most.

        Wait for the first one for `wait` seconds; return none if none comes. visibility: for how many seconds other
        receivers do not see the received messages.
        """
        ...

    async def delete(self, receipts: Sequence[str]) -> None: ...

    async def hide(self, receipt: str, seconds: int) -> None:
        """Hide a received message from all receivers for this number of seconds from now."""
        ...

    async def dead_letter_queue(self) -> Queue | None:
        """Return the queue's dead-letter queue, which its redrive policy names.

        Return None if the queue has no such policy, or if the caller may not read it.
        """
        ...


class SqsQueue:
    """A queue of Amazon SQS, whose calls a ThreadedClient makes."""

    def __init__(self, url: str, client: ThreadedClient, max_receives: int | None = None) -> None:
        self.url = url
        self.max_receives = max_receives
        self._client = client

    @property
    def region(self) -> str:
        return self._client.region

    @property
    def endpoint(self) -> str:
        return self._client.endpoint

    async def send(self, entries: Sequence[Outgoing]) -> list[RefusedEntry]:
        refused: list[RefusedEntry] = []
        for part in batches(entries):
            answer = await self._call("SendMessageBatch", Entries=[_entry(str(i), one) for i, one in enumerate(part)])
            refused += [
                RefusedEntry(part[int(fault["Id"])], str(fault.get("Code", "")), bool(fault.get("SenderFault")))
                for fault in answer.get("Failed", [])
            ]
        return refused

    async def receive(self, limit: int, *, wait: int, visibility: int) -> list[Received]:
        answer = await self._call(
            "ReceiveMessage",
            MaxNumberOfMessages=max(1, min(limit, BATCH)),
            WaitTimeSeconds=wait,
            VisibilityTimeout=visibility,
            AttributeNames=["ApproximateReceiveCount"],
        )
        return [
            Received(
                message["MessageId"],
                message["ReceiptHandle"],
                message["Body"],
                int(message.get("Attributes", {}).get("ApproximateReceiveCount", "1")),
            )
            for message in answer.get("Messages", [])
        ]

    async def delete(self, receipts: Sequence[str]) -> None:
        for start in range(0, len(receipts), BATCH):
            part = receipts[start : start + BATCH]
            entries = [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(part)]
            answer = await self._call("DeleteMessageBatch", Entries=entries)
            if failed := answer.get("Failed"):
                # A worker receives the messages again. Their digests are in the ledger then.
                log.warning("%d messages could not be deleted: %s", len(failed), failed[0].get("Code"))

    async def hide(self, receipt: str, seconds: int) -> None:
        await self._call("ChangeMessageVisibility", ReceiptHandle=receipt, VisibilityTimeout=seconds)

    def beside(self, arn: str) -> SqsQueue:
        """Return the queue with this ARN, which must be in the same account and region.

        A Lambda event names its queue by an ARN. For an empty ARN, return this queue. The other queue is taken to have
        the same max_receives.
        """
        name = arn.rpartition(":")[2]
        return SqsQueue(f"{self.url.rpartition('/')[0]}/{name}", self._client, self.max_receives) if name else self

    async def dead_letter_queue(self) -> Queue | None:
        try:
            answer = await self._client.call("GetQueueAttributes", QueueUrl=self.url, AttributeNames=["RedrivePolicy"])
            policy = answer.get("Attributes", {}).get("RedrivePolicy")
            if not policy:
                log.warning(
                    "the queue %s has no dead-letter queue: messages that cannot be hashed stay on it, and are tried"
                    " again and again; give it a redrive policy, or set AUDITOR_DEAD_LETTER_QUEUE",
                    self.url,
                )
                return None
            redrive = parse_object(policy)
            self.max_receives = int(redrive["maxReceiveCount"])  # SQS gives a number, other servers a text
            *_, account, name = redrive["deadLetterTargetArn"].split(":")
            found = await self._client.call("GetQueueUrl", QueueName=name, QueueOwnerAWSAccountId=account)
        except CallFailed as failure:
            if failure.code in DENIED | ABSENT:
                log.warning(
                    "the dead-letter queue of %s cannot be found: %s %s", self.url, failure.action, failure.code
                )
                return None
            raise _explained(self.url, failure) from failure
        return SqsQueue(found["QueueUrl"], self._client)

    async def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        try:
            return await self._client.call(operation, QueueUrl=self.url, **arguments)
        except CallFailed as failure:
            raise _explained(self.url, failure) from failure


@asynccontextmanager
async def open_queue(
    url: str,
    *,
    flag: str = "--queue",
    region: str | None = None,
    endpoint_url: str | None = None,
    profile: str | None = None,
) -> AsyncIterator[SqsQueue]:
    """Open the queue with this URL, at the host and in the region that the URL names. flag: the flag that gave the URL,
    for messages.

    If the host is AWS's, endpoint_url, AWS_ENDPOINT_URL_SQS or AWS_ENDPOINT_URL can replace it.
    """
    host, own_region = _parse(url, flag)
    endpoint = endpoint_url
    if endpoint is None and own_region is not None:
        endpoint = await asyncio.to_thread(custom_endpoint, "sqs", None, profile)  # custom_endpoint reads files
    if endpoint is None and (own_region is None or "vpce" in host):
        parts = urlsplit(url)
        endpoint = f"{parts.scheme}://{parts.netloc}"
    async with open_client(
        "sqs",
        threads=THREADS,
        region=own_region or region,
        endpoint_url=endpoint,
        profile=profile,
        fips=endpoint is None and host.startswith("sqs-fips."),
    ) as client:
        yield SqsQueue(url, client)


def batches(entries: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Split messages, in order, into batches of at most ten and 256 KiB. A larger message gets its own batch."""
    part: list[Outgoing] = []
    size = 0
    for entry in entries:
        if part and (len(part) == BATCH or size + entry.size > BATCH_BYTES):
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.size
    if part:
        yield part


def _entry(name: str, outgoing: Outgoing) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": name, "MessageBody": outgoing.body}
    if outgoing.delay:
        entry["DelaySeconds"] = min(outgoing.delay, MAX_DELAY)
    if outgoing.group:
        entry["MessageGroupId"] = outgoing.group
    if outgoing.attributes:
        entry["MessageAttributes"] = {
            name: {"DataType": "String", "StringValue": value} for name, value in outgoing.attributes.items()
        }
    return entry


def _parse(url: str, flag: str) -> tuple[str, str | None]:
    """Return the host and the region of a queue's URL; the region is None if the host is not AWS's.

    Raises UsageError if the URL does not belong to a queue, or if the queue is a FIFO queue.
    """
    parts = urlsplit(url if is_web_address(url) else "")
    if not parts.hostname or not parts.path.strip("/"):
        raise UsageError(
            f"{flag} {url[:200]!r} is not a queue's URL: it looks like https://sqs.REGION.amazonaws.com/ACCOUNT/NAME"
        )
    if parts.path.endswith(".fifo"):
        raise UsageError(
            f"{flag} {url[:200]!r} is a FIFO queue, which cannot delay single messages: use a standard one"
        )
    labels = parts.hostname.split(".")
    regions = [label for label in labels if _REGION.match(label)]
    return parts.hostname, regions[0] if regions and _SERVICE.intersection(labels) else None


def _explained(url: str, failure: CallFailed) -> QueueError:
    permission = f"sqs:{failure.action.removesuffix('Batch')}"  # a batch needs the permission of the single call
    return QueueError(explain(f"the queue {url}", failure, allow=permission, absent="check its URL and region"))
