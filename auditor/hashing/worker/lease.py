"""Hash a large object under a lease: one worker at a time, which leaves a checkpoint for the next one."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from auditor.errors import AuditorError, LeaseLostError, LedgerError
from auditor.hashing.digest.options import Checkpoint, Save
from auditor.hashing.digest.result import Failed, Hashed, Paused, Result
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import Held, Lease, Leases, Work

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 300.0
"""The longest wait for the object of a crashed worker: five times the time between two renewals."""

Read = Callable[[Checkpoint | None, Save], Awaitable[Result]]
"""Hash the object from a checkpoint on, and save checkpoints on the way."""
Keep = Callable[[Hashed], Awaitable[Result]]
"""Record a digest; the result is Failed where the ledger has another one."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another worker has the lease of this object. seconds: until another attempt is worth it."""

    task: HashTask
    seconds: int


class LeasedHasher:
    """Claims the lease, hashes, records, releases; each checkpoint renews the lease, in one write.

    owner: a name of this process alone. clock: seconds since the epoch, as in leases.
    """

    def __init__(
        self,
        ledger: Leases,
        owner: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._claims = itertools.count(1)

    async def hash(self, work: Work, task: HashTask, read: Read, keep: Keep) -> Result | Waiting:
        """The result of the object. Paused: the ledger has the checkpoint, and the lease is free for the next worker.

        A lost lease ends in Waiting, with nothing written: its new holder hashes the object. Raises LedgerError, and
        the errors of `read`; the lease is then free, or expires.
        """
        # Two copies of a message in one process are two claimants: one of them waits.
        owner = f"{self._owner}/{next(self._claims)}"
        claimed = await self._ledger.claim(work, owner, self._lease_seconds)
        if isinstance(claimed, Held):
            return Waiting(task, max(1, math.ceil(claimed.until - self._clock())))
        hold = _Hold(self._ledger, claimed, self._lease_seconds, self._clock)
        try:
            result = await _hashed(hold, task, read, keep)
        except LeaseLostError:
            log.warning("another worker took over an object of %d bytes: what this one found is dropped", task.size)
            return Waiting(task, math.ceil(self._lease_seconds))
        except AuditorError:
            with suppress(LedgerError):  # the first error is raised; the lease expires by itself
                await self._ledger.release(hold.lease, done=False)
            raise
        await self._ledger.release(hold.lease, done=not isinstance(result, Paused | Failed))
        return result


async def _hashed(hold: _Hold, task: HashTask, read: Read, keep: Keep) -> Result:
    result = await read(hold.lease.checkpoint, hold.save)
    if isinstance(result, Hashed):
        await hold.renew(None)  # the lease is still ours, so that we may record
        return await keep(result)
    if isinstance(result, Paused) and result.checkpoint is not None:
        await hold.renew(result.checkpoint)
    if isinstance(result, Failed) and hold.advanced:
        # Only attempts without progress count; hops bound the others.
        return replace(result, task=replace(task, attempts=0, hops=task.hops + 1))
    return result


class _Hold:
    """The current lease. advanced: a checkpoint was written under it."""

    def __init__(self, ledger: Leases, lease: Lease, seconds: float, clock: Callable[[], float]) -> None:
        self.lease = lease
        self.advanced = False
        self._ledger = ledger
        self._seconds = seconds
        self._clock = clock

    async def renew(self, checkpoint: Checkpoint | None) -> None:
        """Extend the lease. Raises LeaseLostError when another worker has it, LedgerError when nobody can tell."""
        self.lease = await self._ledger.renew(self.lease, self._seconds, checkpoint)
        self.advanced = self.advanced or checkpoint is not None

    async def save(self, checkpoint: Checkpoint | None) -> None:
        """Extend the lease with a checkpoint; a ledger that fails gets another call later while the lease lasts."""
        try:
            await self.renew(checkpoint)
        except LeaseLostError:
            raise
        except LedgerError as error:
            if self._clock() >= self.lease.until:
                raise
            log.warning("a checkpoint could not be written: %s", error)
