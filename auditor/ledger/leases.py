"""Leases of long work: a lease lets one owner at a time work, and keeps the work's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A piece of work that a lease protects: hashing one object version by certain algorithms."""

    bucket: str
    key: str
    version_id: str | None
    etag: str
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The exclusive right of one owner to do a piece of work, until a time."""

    work: Work
    owner: str
    """The holder's name."""
    until: float
    """Seconds since the epoch; afterwards anyone may take the work over."""
    fence: int
    """A number that grows with every claim. A write with an old fence is refused."""
    hops: int
    """Number of claims so far."""
    checkpoint: Mapping[str, Any] | None = None
    """The JSON object that the last holder wrote, unchecked; None if there is none."""


@dataclass(frozen=True, slots=True)
class Held:
    """The answer to a claim of work that another owner holds. until: end of that lease, in seconds since the epoch."""

    owner: str
    until: float


class Leases(Protocol):
    """The part of a ledger that keeps leases and the checkpoints of work. Raises LedgerError, and LeaseLostError."""

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        """Take the lease of a piece of work, for `seconds`, if no one holds it or it has expired. Return Held if
        another owner has it. Of several claims at once, one wins. The lease has the work's last checkpoint.

        A lease that ends more than `seconds` from now comes from a clock that is ahead: it is shortened to `seconds`,
        unless its owner renews it. An owner may claim work again that it holds itself.
        """
        ...

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        """Extend the lease, and write the checkpoint; None keeps the present one. Raises LeaseLostError."""
        ...

    async def release(self, lease: Lease, *, done: bool) -> None:
        """End the lease, so that others may claim the work at once. done: True to delete the checkpoint too.

        Do nothing if another owner has taken the lease over.
        """
        ...
