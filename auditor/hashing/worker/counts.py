"""The counts of messages and of their objects, and the result of one message."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.errors import AuditorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """All but `messages` count objects.

    failed: objects given up, and malformed messages; `dead_lettered` of them are on the dead-letter queue, and the
    bytes of `mismatched` contradict S3's checksum. resent: objects that failed and were sent again; the next worker
    counts them. continued: objects that were sent on for want of time, the large ones with a checkpoint in the ledger.
    waiting: objects that another worker is hashing; their message comes again. left_for_cost: new objects of a storage
    class that charges for reading.
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
    """The result of one message. retry_after: seconds until it comes again; None: delete it.

    due: seconds until the messages that were sent in its place can be received. doom: an error that every message
    meets.
    """

    counts: Counts
    retry_after: int | None = None
    due: int = 0
    doom: AuditorError | None = None
