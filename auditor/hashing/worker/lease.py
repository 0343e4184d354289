"""Hash a large object under a lease in the ledger: only one worker at a time reads the object, and saves
checkpoints.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.errors import AuditorError, LeaseLostError, LedgerError
from auditor.hashing.digest.options import Checkpoint, Save
from auditor.hashing.digest.result import Failed, Hashed, Paused, Result
from auditor.hashing.queue.message import HashTask
from auditor.ledger.leases import Held, Lease, Leases, Work

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 300.0
"""Seconds that a lease lasts: five times the interval at which it is renewed. If the lease's worker crashes, the object
waits at most this long."""

Read = Callable[[Checkpoint | None, Save], Awaitable[Result]]
"""A function that hashes the object, from a checkpoint if there is one, and saves checkpoints meanwhile."""
Keep = Callable[[Hashed], Awaitable[Result]]
"""A function that records the digests of a hashed object in the ledger. The result is Failed if the ledger has another
digest."""


class Waiting(Struct, frozen=True):
    """An object whose lease another worker has.

    seconds: time after which the lease may be free.
    """

    task: HashTask
    seconds: int


class LeasedHasher(Struct, eq=False):
    """Hashes an object under its lease: claims the lease, hashes, records the digests, releases the lease.

    Each checkpoint also renews the lease, in the same write. owner: a name that only this process has. clock: returns
    seconds since the epoch, by which leases expire.
    """

    ledger: Leases
    owner: str
    lease_seconds: float
    clock: Callable[[], float]
    claims: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def hash(self, work: Work, task: HashTask, read: Read, keep: Keep) -> Result | Waiting:
        """Hash the object under its lease, and return the result.

        read: reads and hashes the object. keep: records its digests. Return Waiting if another worker has the lease or
        takes it over; that worker then records the digests. After a Paused result, the lease is free, and the ledger
        has the checkpoint, if there is one. Raises LedgerError and the errors of `read`; the lease is then released, or
        expires.
        """
        # Every claim has its own name: if this process has two copies of a message, one of them waits for the other.
        owner = f"{self.owner}/{next(self.claims)}"
        claimed = await self.ledger.claim(work, owner, self.lease_seconds)
        if isinstance(claimed, Held):
            return Waiting(task, max(1, math.ceil(claimed.until - self.clock())))
        hold = _Hold(self, claimed)
        try:
            result = await _hashed(hold, task, read, keep)
        except LeaseLostError:
            log.warning("another worker took over an object of %d bytes: this worker's result is dropped", task.size)
            return Waiting(task, math.ceil(self.lease_seconds))
        except AuditorError:
            with suppress(LedgerError):  # the first error is raised; the lease expires by itself
                await self.ledger.release(hold.lease, done=False)
            raise
        await self.ledger.release(hold.lease, done=not isinstance(result, Paused | Failed))
        return result


async def _hashed(hold: _Hold, task: HashTask, read: Read, keep: Keep) -> Result:
    """Hash the object, and record its digests, if this process still has the lease then."""
    result = await read(hold.lease.checkpoint, hold.save)
    if isinstance(result, Hashed):
        await hold.renew(None)  # raises LeaseLostError if the lease is no longer ours: then nothing is recorded
        return await keep(result)
    if isinstance(result, Paused) and result.checkpoint is not None:
        await hold.renew(result.checkpoint)
    if isinstance(result, Failed) and hold.advanced:
        # An attempt with progress counts as a hop: max_attempts limits failures, max_hops limits slow progress. An
        # outage counts as a hop in any case, when the object is sent again.
        return replace(result, task=replace(task, attempts=0, hops=task.hops + (not result.outage)))
    return result


class _Hold(Struct, eq=False):
    """A lease that this process has.

    hasher: has claimed it. advanced: True if this process has written a checkpoint under it.
    """

    hasher: LeasedHasher
    lease: Lease
    advanced: bool = False

    async def renew(self, checkpoint: Checkpoint | None) -> None:
        """Extend the lease, and write the checkpoint in the same call. With None, the ledger keeps the checkpoint that
        it has.

        Raises LeaseLostError if another worker has taken the lease, LedgerError if the ledger fails.
        """
        self.lease = await self.hasher.ledger.renew(self.lease, self.hasher.lease_seconds, checkpoint)
        self.advanced = self.advanced or checkpoint is not None

    async def save(self, checkpoint: Checkpoint | None) -> None:
        """Write a checkpoint, and extend the lease by it.

        If the ledger fails while the lease lasts, only log the error: a later checkpoint may succeed.
        """
        try:
            await self.renew(checkpoint)
        except LeaseLostError:
            raise
        except LedgerError as error:
            if self.hasher.clock() >= self.lease.until:
                raise
            log.warning("a checkpoint could not be written: %s", error)
