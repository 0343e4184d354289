"""The deployed queues: their messages taken, and messages for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from auditor.hashing.queue.message import HashMessage, HashTask, encode


def message(bucket: str, *tasks: HashTask, run: str = "run") -> str:
    """A message of the hash queue: the SHA-256 of these objects is wanted."""
    return encode(HashMessage(run, bucket, ("sha256",), tasks))


@dataclass(frozen=True, slots=True)
class Queues:
    """sqs: a client."""

    sqs: Any

    def taken(self, url: str) -> list[str]:
        """The bodies of all visible messages of a queue, which are deleted."""
        return [body for body, _ in self.letters(url)]

    def letters(self, url: str) -> list[tuple[str, str | None]]:
        """The same, with the reason beside each: None where there is none."""
        letters: list[tuple[str, str | None]] = []
        while found := self._receive(url):
            attributes = [one.get("MessageAttributes", {}) for one in found]
            reasons = [one["reason"]["StringValue"] if "reason" in one else None for one in attributes]
            letters += zip((one["Body"] for one in found), reasons, strict=True)
        return letters

    def _receive(self, url: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0, MessageAttributeNames=["All"]
        ).get("Messages", [])
        for one in found:
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        return found
