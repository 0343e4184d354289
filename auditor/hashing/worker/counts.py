"""The counts of a worker, and the result of processing one queue message."""

from __future__ import annotations

from msgspec import Struct

from auditor.errors import AuditorError


class Counts(Struct, frozen=True, kw_only=True):
    """The counts of a worker.

    `messages` is a number of queue messages, `healed` a number of rows, and every other count a number of objects.
    """

    messages: int = 0
    hashed: int = 0
    known: int = 0
    """Objects whose digests the ledger had already."""
    superseded: int = 0
    """Objects that were deleted or overwritten, or for which a newer event has come."""
    unhashable: int = 0
    """Objects whose bytes the auditor cannot read: archived, or encrypted with a customer's key."""
    failed: int = 0
    """Objects that failed and were not sent to the queue again; a message that failed as a whole counts as one."""
    mismatched: int = 0
    """Objects among the failed ones whose bytes contradict S3's checksum."""
    dead_lettered: int = 0
    """Objects among the failed ones that were sent to the dead-letter queue."""
    resent: int = 0
    """Objects that failed and were sent to the queue again; the next worker counts their results."""
    continued: int = 0
    """Objects that were sent to the queue again because time ran out; large ones have a checkpoint in the ledger."""
    waiting: int = 0
    """Objects that another worker is hashing; their message comes again later."""
    left_for_cost: int = 0
    """New objects that were not read, because their storage class charges for reading."""
    healed: int = 0
    """Damaged rows of the ledger that were written anew, because the keys' histories had them."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.__struct_fields__})


class Processed(Struct, frozen=True):
    """The result of processing one queue message.

    retry_after: seconds until the message must come again; None if it must be deleted. due: seconds until the last
    message with objects of this one can be received. doom: an error that every further message would meet; None if
    there is none.
    """

    counts: Counts
    retry_after: int | None = None
    due: int = 0
    doom: AuditorError | None = None
