"""What is written about failures: letters to the dead-letter queue, and lines of the log; both short and printable."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from auditor.hashing import Failed
from auditor.logs import bound
from auditor.messages import HashMessage, encode, pack
from auditor.queues import Outgoing, Received

log = logging.getLogger(__name__)

_REASON: Final = 256
_KEY: Final = 100


def dead_letters(received: Received, message: HashMessage, failed: Sequence[Failed]) -> list[Outgoing]:
    """One letter a reason, ready to be put back on the queue as it is: its objects start with no attempts."""
    letters: list[Outgoing] = []
    for code in sorted({one.code for one in failed}):
        fresh = (replace(one.task, attempts=0) for one in failed if one.code == code)
        letters += [
            Outgoing(encode(part), attributes=_attributes(received, code, message.run))
            for part in pack(message.run, message.bucket, message.algorithms, fresh)
        ]
    return letters


def malformed(received: Received, reason: str) -> Outgoing:
    """The message as it came, with the reason beside it."""
    return Outgoing(received.body, attributes=_attributes(received, reason))


def log_failures(received: Received, message: HashMessage, failed: Sequence[Failed]) -> None:
    for one in failed:
        key, attempt = repr(one.task.key)[:_KEY], one.task.attempts + 1
        with bound(run=message.run, bucket=message.bucket):
            log.warning("run %s, message %s: %s: %s, attempt %d", message.run, received.id, key, one.code, attempt)


def _attributes(received: Received, reason: str, run: str = "") -> dict[str, str]:
    """Message attributes, never empty, printable ASCII: SQS refuses other characters."""
    named = {"reason": reason, "message_id": received.id, "run": run}
    return {name: ascii(value)[1:-1][:_REASON] for name, value in named.items() if value}
