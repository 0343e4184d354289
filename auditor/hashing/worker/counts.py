"""What became of messages and of the objects in them."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.errors import AuditorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of messages and their objects.

    failed: objects given up, and malformed messages; of these, dead_lettered are on the dead-letter queue. mismatched:
    of the failed, those whose bytes are not what S3's own checksum says. resent: objects that failed and were sent
    again, to be counted by who gets them next. continued: objects that were sent on for want of time, the large ones
    with their state in the ledger. waiting: objects that another worker is at; their message comes again.
    left_for_cost: new objects of a storage class that is charged for reading.
    """

    messages: int = 0
    hashed: int = 0
    known: int = 0
    superseded: int = 0
    unhashable: int = 0
    failed: int = 0
    mismatched: int = 0
    dead_lettered: int = 0
    resent: int = 0
    continued: int = 0
    waiting: int = 0
    left_for_cost: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.__slots__})


@dataclass(frozen=True, slots=True)
class Processed:
    """The result of one message. retry_after: None to delete it, else the seconds after which it comes again.

    due: seconds after which what is ours to see through can be received. doom: why no message at all can be worked on.
    """

    counts: Counts
    retry_after: int | None = None
    due: int = 0
    doom: AuditorError | None = None
