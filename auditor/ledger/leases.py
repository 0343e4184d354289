"""Leases of long work. A lease gives one owner at a time the right to do a piece of work, and keeps the work's
checkpoint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from auditor.errors import LeaseLostError, LedgerError
from auditor.model.json_codec import JsonError, parse_object

LARGEST_CHECKPOINT: Final = 300 * 1024
"""Largest size of a checkpoint's JSON, in bytes: the lease's item then stays below DynamoDB's limit of 400 KB."""


class Work(Struct, frozen=True):
    """A piece of work that a lease protects: hashing one object version by certain algorithms."""

    bucket: str
    key: str
    version_id: str | None
    etag: str
    algorithms: tuple[str, ...]


class Lease(Struct, frozen=True):
    """The exclusive right of one owner to do a piece of work, until the lease expires."""

    work: Work
    owner: str
    """Name of the process that has the lease."""
    until: float
    """Time at which the lease expires, in seconds since the epoch; from then on anyone may claim the work."""
    fence: int
    """The fence: a number that grows with every claim of the work. The ledger refuses writes of an owner with an older
    number."""
    hops: int
    """Number of claims of this work since it was last finished, this one included."""
    checkpoint: Mapping[str, Any] | None = None
    """The last checkpoint of the work, a JSON object as its writer saved it, not validated; None if there is none."""


class Held(Struct, frozen=True):
    """The answer to a claim of work whose lease another owner has.

    until: time at which that lease expires, in seconds since the epoch.
    """

    owner: str
    until: float


class Leases(Protocol):
    """The part of a ledger that keeps leases and the checkpoints of work.

    Raises LedgerError if the ledger cannot be used, LeaseLostError if another owner has taken over a lease to be
    renewed.
    """

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        """Take the lease of a piece of work for `seconds`, and return it with the work's last checkpoint; return Held
        if another owner has the lease.

        The lease can be taken if nobody has it, if it has expired, or if `owner` has it already. If several processes
        claim the work at the same time, one of them gets the lease. If another owner's lease ends more than `seconds`
        from now, that owner's clock is ahead: its lease is shortened to `seconds`.
        """
        ...

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        """Extend the lease to `seconds` from now, and save the work's checkpoint in the same write; None keeps the
        saved one.

        Raises LeaseLostError if another owner has taken the lease over.
        """
        ...

    async def release(self, lease: Lease, *, done: bool) -> None:
        """End the lease, so that another owner can claim the work at once; do nothing if another owner has taken the
        lease over.

        done: True if the work is finished: delete its checkpoint, and count its claims from 0 again.
        """
        ...


def work_name(work: Work) -> str:
    """Return the name under which a ledger stores the lease of a piece of work: 64 hex digits, a hash.

    The order of the algorithms does not change the name.
    """
    named = [work.bucket, work.key, work.version_id or "null", work.etag, sorted(set(work.algorithms))]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()


def write_checkpoint(checkpoint: Mapping[str, Any]) -> str:
    """Return a checkpoint as JSON text. Raises LedgerError if it is too large."""
    text = json.dumps(checkpoint, separators=(",", ":"))
    if len(text) > LARGEST_CHECKPOINT:  # ASCII: a character is a byte
        raise LedgerError(
            f"a checkpoint of {len(text):,} bytes is too large for the ledger, which takes {LARGEST_CHECKPOINT:,}"
        )
    return text


def read_checkpoint(text: str | None) -> dict[str, Any] | None:
    """Parse the text of a checkpoint; return None for None.

    Return {} for a text that is not a JSON object. Whoever continues the work refuses {} as a checkpoint, and begins
    anew.
    """
    if text is None:
        return None
    try:
        return parse_object(text)
    except JsonError:
        return {}


def lost(lease: Lease) -> LeaseLostError:
    """Return the error for an owner whose lease another owner has taken over."""
    return LeaseLostError(
        f"the lease on {lease.work.key[:100]!r} in bucket {lease.work.bucket!r} is no longer {lease.owner[:100]!r}'s:"
        " another worker continues it; nothing was written"
    )
