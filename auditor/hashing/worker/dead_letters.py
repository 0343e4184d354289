"""Report failures: dead letters and log lines, both short and printable."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from auditor.aws.sqs import Outgoing, Received
from auditor.hashing.digest.result import Failed, Mismatch
from auditor.hashing.queue.message import HashMessage, encode, pack
from auditor.logs import bound

log = logging.getLogger(__name__)

_REASON: Final = 256
_KEY: Final = 100


def dead_letters(received: Received, message: HashMessage, failed: Sequence[Failed]) -> list[Outgoing]:
    """One dead letter a reason. Back on the queue it works as it is: its objects have no attempts and no hops."""
    letters: list[Outgoing] = []
    for code in sorted({one.code for one in failed}):
        fresh = (replace(one.task, attempts=0, hops=0) for one in failed if one.code == code)
        letters += [
            Outgoing(encode(part), attributes=_attributes(received, code, message.run))
            for part in pack(message.run, message.bucket, message.algorithms, fresh)
        ]
    return letters


def malformed(received: Received, reason: str) -> Outgoing:
    """The unchanged message, with the reason as an attribute."""
    return Outgoing(received.body, attributes=_attributes(received, reason))


def log_failures(received: Received, message: HashMessage, failed: Sequence[Failed]) -> None:
    for one in failed:
        key, attempt = repr(one.task.key)[:_KEY], one.task.attempts + 1
        with bound(run=message.run, bucket=message.bucket):
            log.warning("run %s, message %s: %s: %s, attempt %d", message.run, received.id, key, one.code, attempt)


def log_mismatch(message: HashMessage, found: Mismatch) -> None:
    key, task = repr(found.task.key)[:_KEY], found.task
    with bound(run=message.run, bucket=message.bucket):
        log.error(
            "%s (version %s, ETag %s): its bytes are not those that S3 took its checksum of: %s is %s, S3 has %s",
            key,
            task.version_id,
            task.etag,
            found.algorithm,
            found.ours,
            found.stored,
        )


def _attributes(received: Received, reason: str, run: str = "") -> dict[str, str]:
    """Message attributes, never empty, printable ASCII: SQS refuses other characters."""
    named = {"reason": reason, "message_id": received.id, "run": run}
    return {name: ascii(value)[1:-1][:_REASON] for name, value in named.items() if value}
