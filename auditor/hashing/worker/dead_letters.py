"""Report objects that could not be hashed: in messages for the dead-letter queue, and in log lines. Both are short and
printable.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from auditor.aws.sqs import Outgoing, Received
from auditor.hashing.digest.result import Failed, Mismatch
from auditor.hashing.queue.message import HashMessage, pack
from auditor.hashing.queue.send import outgoing
from auditor.logs import bound

log = logging.getLogger(__name__)

_REASON: Final = 256
_KEY: Final = 100


def dead_letters(received: Received, message: HashMessage, failed: Sequence[Failed]) -> list[Outgoing]:
    """Return messages for the dead-letter queue with the failed objects, at least one message for each error code.

    A person can move such a message back to the queue as it is: its objects then count as not yet tried.
    """
    letters: list[Outgoing] = []
    for code in sorted({one.code for one in failed}):
        fresh = (replace(one.task, attempts=0, hops=0) for one in failed if one.code == code)
        letters += [
            outgoing(part, attributes=_attributes(received, code, message.run))
            for part in pack(message.run, message.bucket, message.algorithms, fresh)
        ]
    return letters


def given_up(received: Received, reason: str, group: str = "") -> Outgoing:
    """Return a received message as a whole for the dead-letter queue: its body unchanged, and the reason as an
    attribute. group: its MessageGroupId; "" for a message that names no bucket.
    """
    return Outgoing(received.body, attributes=_attributes(received, reason), group=group)


def log_failures(received: Received, message: HashMessage, failed: Sequence[Failed]) -> None:
    """Log each failed object with its error code and the number of the attempt, or in an outage of S3 of the hop."""
    for one in failed:
        key = repr(one.task.key)[:_KEY]
        count = f"S3 fails, hop {one.task.hops + 1}" if one.outage else f"attempt {one.task.attempts + 1}"
        with bound(run=message.run, bucket=message.bucket):
            log.warning("run %s, message %s: %s: %s, %s", message.run, received.id, key, one.code, count)


def log_mismatch(message: HashMessage, found: Mismatch) -> None:
    """Log an object whose bytes contradict S3's checksum."""
    key, task = repr(found.task.key)[:_KEY], found.task
    words = "%s (version %s, ETag %s): its bytes do not match S3's checksum: %s is %s, S3 has %s"
    with bound(run=message.run, bucket=message.bucket):
        log.error(words, key, task.version_id, task.etag, found.algorithm, found.ours, found.stored)


def _attributes(received: Received, reason: str, run: str = "") -> dict[str, str]:
    """Return the attributes of a message for the dead-letter queue, in printable ASCII.

    Empty attributes are left out, because SQS refuses them.
    """
    named = {"reason": reason, "message_id": received.id, "run": run}
    return {name: ascii(value)[1:-1][:_REASON] for name, value in named.items() if value}
