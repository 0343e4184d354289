"""The DynamoDB ledger: one table with an item for each object version, which has an attribute for each algorithm."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from auditor.aws.client import ThreadedClient, open_client
from auditor.errors import CallFailed
from auditor.ledger.base import Ledger
from auditor.ledger.dynamodb.digests import DynamoDigests
from auditor.ledger.dynamodb.leases import DynamoLeases
from auditor.ledger.dynamodb.ordered import ShardReader
from auditor.ledger.dynamodb.scanning import DynamoScans
from auditor.ledger.dynamodb.table import THREADS, Table, explained
from auditor.ledger.ordered import OrderedReader
from auditor.s3.json_calls import open_json_client

Clock = Callable[[], float]


class DynamoLedger(DynamoDigests, DynamoScans, DynamoLeases):
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

    def in_order(self, bucket: str) -> OrderedReader:
        return ShardReader(self._table, bucket, partial(self.known, bucket))


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
