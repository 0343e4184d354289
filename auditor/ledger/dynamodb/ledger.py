"""The DynamoDB ledger: one table with an item for each object version, which has an attribute for each algorithm."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from auditor.aws.client import ThreadedClient, open_client
from auditor.errors import CallFailed, DigestConflict
from auditor.ledger.base import Checked, Entry, Event, Expectation, KeyRecord, Ledger, Notice
from auditor.ledger.dynamodb import digests, evidence, leases, scanning
from auditor.ledger.dynamodb.calls import THREADS, explained
from auditor.ledger.dynamodb.items import entry_name
from auditor.ledger.dynamodb.lines import lines_of
from auditor.ledger.dynamodb.ordered import ShardReader
from auditor.ledger.dynamodb.table import Table, in_order
from auditor.ledger.leases import Held, Lease, Work
from auditor.ledger.ordered import OrderedReader
from auditor.model.object import AnyVersion
from auditor.s3.json_calls import open_json_client

Clock = Callable[[], float]


class DynamoLedger:
    """A ledger in one DynamoDB table. Its writes are conditional, and never replace a digest."""

    def __init__(
        self,
        table: str,
        client: ThreadedClient,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Clock = time.time,
    ) -> None:
        self._table = Table(table, client, sleep, clock)
        self._clock = clock

    async def probe(self) -> None:
        await self._table.probe()

    async def known(
        self, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        return await digests.known(self._table, bucket, refs, algorithms)

    def in_order(self, bucket: str) -> OrderedReader:
        return ShardReader(self._table, bucket, partial(self.known, bucket))

    async def heal(self, bucket: str, keys: Sequence[str]) -> int:
        return sum(await in_order(keys, lambda key: key, lambda key: digests.heal(self._table, bucket, key)))

    async def record(self, entry: Entry) -> bool:
        answer = await digests.record(self._table, entry)
        if isinstance(answer, DigestConflict):
            raise answer
        return answer

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        return await in_order(entries, entry_name, lambda entry: digests.record(self._table, entry))

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        return await leases.claim(self._table, work, owner, self._clock, seconds)

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        return await leases.renew(self._table, lease, self._clock() + seconds, checkpoint)

    async def release(self, lease: Lease, *, done: bool) -> None:
        await leases.release(self._table, lease, done=done)

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        await evidence.note(self._table, bucket, events)

    async def history(self, bucket: str, key: str) -> list[Event]:
        return await lines_of(self._table, bucket, key)

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        return await evidence.arrived(self._table, bucket, notice)

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        return await evidence.expect(self._table, bucket, expectations)

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        return await evidence.subject(self._table, bucket, key)

    def subjects(self, bucket: str, prefix: str = "", start_after: str = "") -> AsyncGenerator[KeyRecord, None]:
        return scanning.subjects(self._table, bucket, prefix, start_after)

    def histories(self, bucket: str, prefix: str = "") -> AsyncGenerator[list[Event], None]:
        return scanning.histories(self._table, bucket, prefix)

    def checked(self) -> AsyncGenerator[list[Checked], None]:
        return scanning.checked(self._table)


@asynccontextmanager
async def open_dynamodb(
    name: str,
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    profile: str | None = None,
    clock: Clock = time.time,
) -> AsyncIterator[Ledger]:
    """Open the DynamoDB ledger in the table `name`, which must exist (create_table). Raises LedgerError.

    region, endpoint_url, profile: for the AWS client; None for the SDK's defaults. clock: returns seconds since the
    epoch, by which leases expire.
    """
    async with open_json_client(
        "dynamodb", threads=THREADS, region=region, endpoint_url=endpoint_url, profile=profile
    ) as client:
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
