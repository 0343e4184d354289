"""The counts of a worker, and the result of one queue message."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.errors import AuditorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of a worker. Every count except `messages` is a number of objects."""

    messages: int = 0
    hashed: int = 0
    known: int = 0
    """Objects whose digests the ledger had already."""
    superseded: int = 0
    """Objects that were deleted, overwritten, or replaced by a newer event."""
    unhashable: int = 0
    """Objects whose bytes nobody can read: archived, or encrypted with a customer's key."""
    failed: int = 0
    """Objects that were given up, and malformed messages."""
    mismatched: int = 0
    """Failed objects whose bytes contradict S3's checksum."""
    dead_lettered: int = 0
    """Failed objects that are on the dead-letter queue."""
    resent: int = 0
    """Objects that failed and were sent again; the next worker counts their results."""
    continued: int = 0
    """Objects that were sent on because time ran out, the large ones with a checkpoint in the ledger."""
    waiting: int = 0
    """Objects that another worker is hashing; their message comes again."""
    left_for_cost: int = 0
    """New objects in a storage class that charges for reading."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.__slots__})


@dataclass(frozen=True, slots=True)
class Processed:
    """The result of processing one queue message.

    retry_after: seconds until the message comes again; None if it is to be deleted. due: seconds until the messages
    sent in its place can be received. doom: the error that every further message would meet.
    """

    counts: Counts
    retry_after: int | None = None
    due: int = 0
    doom: AuditorError | None = None
