"""Leases in a DynamoDB ledger. Each claim is one conditional write, so that only one of several claims at once
succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from auditor.errors import LedgerError
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.items import CLAIM, Item, Name, partition
from auditor.ledger.dynamodb.table import TRIES, ConditionFailed, Table
from auditor.ledger.leases import Held, Lease, Work, lost, read_checkpoint, work_name, write_checkpoint


class DynamoLeases:
    """The part of a DynamoDB ledger that keeps leases.

    _clock: returns seconds since the epoch, by which leases expire.
    """

    _table: Table
    _clock: Callable[[], float]

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        for _ in range(TRIES):
            now = self._clock()
            change = Change(_name(work)).put("owner", owner).put("until", now + seconds).add("fence", 1).add("hops", 1)
            change.when_any(("owner", "=", None), ("owner", "=", owner), ("until", "<=", now))
            try:
                item = await self._table.update(change, returned="ALL_NEW")
            except ConditionFailed:
                found = await self._table.get(_name(work)) or Item()
                if (holder := found.text("owner")) is not None and (until := _until(found)) > now:
                    if until > now + seconds:
                        until = now + seconds
                        await self._shorten(found, until)
                    return Held(holder, until)
                continue  # the holder released the lease in between
            return Lease(
                work=work,
                owner=owner,
                until=now + seconds,
                fence=item.number("fence") or 0,
                hops=item.number("hops") or 0,
                checkpoint=read_checkpoint(item.text("checkpoint")),
            )
        raise LedgerError(
            f"the lease on {work.key[:100]!r} in bucket {work.bucket!r} changes hands too fast to be claimed"
        )

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        until = self._clock() + seconds
        change = _held(lease).put("until", until)
        if checkpoint is not None:
            change.put("checkpoint", write_checkpoint(checkpoint))
        if not await self._table.attempt(change):
            raise lost(lease)
        return replace(lease, until=until, checkpoint=lease.checkpoint if checkpoint is None else checkpoint)

    async def release(self, lease: Lease, *, done: bool) -> None:
        """End the lease; do nothing if its owner has lost it already.

        The item of the lease stays in the table: its fence, the number of the claim, makes DynamoDB refuse later writes
        of this owner. done: True if the work is finished: delete the checkpoint, and count claims from 0 again.
        """
        change = _held(lease).put("owner", None).put("until", 0)
        if done:
            change.put("checkpoint", None).put("hops", 0)
        await self._table.attempt(change)

    async def _shorten(self, found: Item, until: float) -> None:
        """Shorten another owner's lease, so that it ends at `until`. Do nothing if that owner has renewed the lease
        since `found`, its item, was read.

        A lease is too long if its owner's clock is ahead: if that owner dies, the work would wait for nothing.
        """
        change = Change((found["pk"]["S"], found["sk"]["S"])).put("until", until)
        change.when("owner", found.text("owner")).when("until", _until(found))
        await self._table.attempt(change)


def _until(item: Item) -> float:
    """Return the end of the lease in an item, in seconds since 1970; 0 if it is missing or damaged."""
    try:
        return float(item.get("until", {}).get("N", 0))
    except ValueError:
        return 0.0


def _held(lease: Lease) -> Change:
    """Begin a change of the lease's item that succeeds only if the lease's owner still has the lease."""
    return Change(_name(lease.work)).when("owner", lease.owner).when("fence", lease.fence)


def _name(work: Work) -> Name:
    return partition(work.bucket, work.key), CLAIM + work_name(work)
