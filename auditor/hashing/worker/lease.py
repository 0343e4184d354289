"""A large object is hashed under a lease: one worker at a time, which leaves its state for the one after it."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from auditor.errors import AuditorError, LeaseLostError, LedgerError
from auditor.hashing.digest.object import Save
from auditor.hashing.digest.result import Failed, Hashed, Paused, Result
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import Held, Lease, Leases, Work

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 300.0
"""A crashed worker's object waits so long at most; five times as long as a lease goes without being renewed."""

Read = Callable[[Mapping[str, Any] | None, Save], Awaitable[Result]]
"""Hash the object from a checkpoint on, saving one now and then."""
Keep = Callable[[Hashed], Awaitable[Result]]
"""Record a digest; the result is what came of that."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another worker is at this object. seconds: after which it is worth another look."""

    task: HashTask
    seconds: int


class LeasedHasher:
    """Claims, hashes, records, releases; each checkpoint renews the lease, and is written with it.

    owner: this process's name, of no other. clock: seconds since the epoch, as leases have them.
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
        """What became of the object. Paused: the ledger has its state, and the lease is free for whoever goes on.

        A lease that was lost ends in Waiting, with nothing written: whoever has it sees to the object. Raises
        LedgerError, and what `read` raises; the lease is then free, or runs out.
        """
        # Two copies of a message in one process are two claimants: one of them has to wait.
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
            with suppress(LedgerError):  # the first error is the one to tell; the lease runs out by itself
                await self._ledger.release(hold.lease, done=False)
            raise
        await self._ledger.release(hold.lease, done=not isinstance(result, Paused | Failed))
        return result


async def _hashed(hold: _Hold, task: HashTask, read: Read, keep: Keep) -> Result:
    result = await read(hold.lease.checkpoint, hold.save)
    if isinstance(result, Hashed):
        await hold.renew(None)  # nobody else is at it: what was found is ours to record
        return await keep(result)
    if isinstance(result, Paused) and result.checkpoint is not None:
        await hold.renew(result.checkpoint)
    if isinstance(result, Failed) and hold.advanced:
        # The attempts that count are those that gain no ground; hops bound the others.
        return replace(result, task=replace(task, attempts=0, hops=task.hops + 1))
    return result


class _Hold:
    """A lease in hand, in its newest form. advanced: a checkpoint was written under it."""

    def __init__(self, ledger: Leases, lease: Lease, seconds: float, clock: Callable[[], float]) -> None:
        self.lease = lease
        self.advanced = False
        self._ledger = ledger
        self._seconds = seconds
        self._clock = clock

    async def renew(self, checkpoint: Mapping[str, Any] | None) -> None:
        """Hold it longer; raises LeaseLostError when another worker has it, LedgerError when nobody can tell."""
        self.lease = await self._ledger.renew(self.lease, self._seconds, checkpoint)
        self.advanced = self.advanced or checkpoint is not None

    async def save(self, checkpoint: Mapping[str, Any] | None) -> None:
        """The same on the way: a ledger that fails is asked again the next time, as long as the lease lasts."""
        try:
            await self.renew(checkpoint)
        except LeaseLostError:
            raise
        except LedgerError as error:
            if self._clock() >= self.lease.until:
                raise
            log.warning("a checkpoint could not be written: %s", error)
