"""The DynamoDB ledger: one table with an item for each object version, which has an attribute for each algorithm."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from msgspec.structs import replace

from auditor.aws.client import ThreadedClient, open_client
from auditor.errors import CallFailed, LedgerError
from auditor.ledger.base import Ledger, OrderedReader
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.digests import DynamoDigests
from auditor.ledger.dynamodb.items import CLAIM, Item, Name, partition
from auditor.ledger.dynamodb.ordered import ShardReader
from auditor.ledger.dynamodb.scanning import DynamoScans
from auditor.ledger.dynamodb.table import THREADS, TRIES, Clock, ConditionFailed, Sleep, Table, explained
from auditor.ledger.leases import Held, Lease, Work, lost, read_checkpoint, work_name, write_checkpoint
from auditor.s3.json_calls import open_json_client


class DynamoLedger(DynamoDigests, DynamoScans):
    """A ledger in one DynamoDB table. Its writes are conditional, and never replace a digest.

    Each claim of a lease is one write too, so that only one of several claims at once succeeds.
    """

    def __init__(
        self, table: str, client: ThreadedClient, *, sleep: Sleep = asyncio.sleep, clock: Clock = time.time
    ) -> None:
        self._table = Table(table, client, sleep, clock)
        self._clock = clock

    async def probe(self) -> None:
        await self._table.probe()

    def in_order(self, bucket: str) -> OrderedReader:
        return ShardReader(self._table, bucket, partial(self.known, bucket))

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
            fence, hops = item.number("fence") or 0, item.number("hops") or 0
            return Lease(work, owner, now + seconds, fence, hops, read_checkpoint(item.text("checkpoint")))
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


@asynccontextmanager
async def open_dynamodb(name: str, *, clock: Clock = time.time, **connection: str | None) -> AsyncIterator[Ledger]:
    """Open the DynamoDB ledger in the table `name`, which must exist (create_table). Raises LedgerError.

    clock: returns seconds since the epoch, by which leases expire. connection: region, endpoint_url and profile of the
    AWS client; None for the SDK's defaults.
    """
    async with open_json_client("dynamodb", threads=THREADS, **connection) as client:
        ledger = DynamoLedger(name, client, clock=clock)
        await ledger.probe()
        yield ledger


async def create_table(
    name: str, *, region: str | None = None, endpoint_url: str | None = None, profile: str | None = None
) -> None:
    """Create the table for a ledger, with on-demand billing. A table of this name that exists is not changed."""
    async with open_client("dynamodb", threads=1, region=region, endpoint_url=endpoint_url, profile=profile) as client:
        try:
            await client.call(
                "CreateTable",
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": part, "AttributeType": "S"} for part in ("pk", "sk")],
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            )
        except CallFailed as failure:
            if failure.code != "ResourceInUseException":
                raise explained(name, client.region, failure) from failure
