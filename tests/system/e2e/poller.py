"""Event source mappings at work: receive, invoke, delete all but what failed.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tests.system.e2e.deployment import Source
from tests.system.e2e.environment import REGION, Answer
from tests.system.e2e.runtime import LocalLambda

Batch = tuple[Source, list[dict[str, Any]]]

_AT_ONCE: Final = 3
"""Environments for one queue, where its mapping allows more."""

_WAITING: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class Poller:
    """A batch whose function failed is left to its visibility timeout."""

    def __init__(self, sqs: Any, local: LocalLambda, sources: Iterable[Source]) -> None:
        self._sqs = sqs
        self._local = local
        self._sources = tuple(sources)

    def drain(self, seconds: float = 600.0) -> None:
        """Until nothing waits, is hidden or delayed in any of the queues. Raises TimeoutError."""
        until = time.monotonic() + seconds
        while any(self.waiting(source.queue_url) for source in self._sources):
            if time.monotonic() > until:
                raise TimeoutError(f"messages were left after {seconds} seconds")
            if not self.poll():
                time.sleep(0.1)

    def poll(self) -> int:
        """At once, a batch from each queue, or more where its mapping allows; how many there were."""
        batches = [batch for source in self._sources for batch in self._receive(source)]
        with ThreadPoolExecutor(_AT_ONCE * len(self._sources)) as threads:
            list(threads.map(self._work, batches))
        return len(batches)

    def waiting(self, queue_url: str) -> int:
        found = self._sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=list(_WAITING))["Attributes"]
        return sum(int(found[name]) for name in _WAITING)

    def _receive(self, source: Source) -> Iterator[Batch]:
        for _ in range(min(source.concurrency, _AT_ONCE)):
            answer = self._sqs.receive_message(
                QueueUrl=source.queue_url,
                MaxNumberOfMessages=source.batch_size,
                WaitTimeSeconds=0,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            if not answer.get("Messages"):
                return
            yield source, [_record(message, source.queue_arn) for message in answer["Messages"]]

    def _work(self, batch: Batch) -> None:
        source, records = batch
        kept = _kept(self._local.invoke(source.function, {"Records": records}), source, records)
        for record in records:
            if record["messageId"] not in kept:
                self._sqs.delete_message(QueueUrl=source.queue_url, ReceiptHandle=record["receiptHandle"])


def _kept(answer: Answer, source: Source, records: list[dict[str, Any]]) -> set[str]:
    """The messages that are not deleted; all of them for an error, and for an answer that names none of them."""
    everything = {record["messageId"] for record in records}
    if answer.error is not None:
        return everything
    told = json.loads(answer.payload)
    failures = told.get("batchItemFailures") if source.partial and isinstance(told, dict) else None
    named = {failure.get("itemIdentifier") for failure in failures or []}
    return named if named <= everything else everything


def _record(message: Mapping[str, Any], arn: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": message.get("MessageAttributes", {}),
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": REGION,
    }
