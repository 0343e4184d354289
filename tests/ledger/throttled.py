"""A DynamoDB that refuses three calls in ten, some after it has done the write."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

from msgspec.structs import replace

from auditor.aws.client import ThreadedClient, open_client
from auditor.errors import CallFailed
from auditor.ledger.base import Event, Expectation, Notice
from auditor.ledger.dynamodb.ledger import DynamoLedger
from auditor.ledger.leases import Held, Lease, Work
from auditor.model.object import ObjectRef
from tests.conformance.ledgers.base import ENTRY, SHA

CODES = (("ProvisionedThroughputExceededException", 400), ("ThrottlingException", 400), ("InternalServerError", 500))
COUNT = 24


class Throttled:
    def __init__(self, client: ThreadedClient, seed: int) -> None:
        self.region = client.region
        self.refused = 0
        self.calls = 0
        self._client = client
        self._random = random.Random(seed)

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        self.calls += 1
        refused, too_late = self._random.random() < 0.3, self._random.random() < 0.5
        if refused:
            self.refused += 1
            if too_late:
                await self._sent(operation, arguments)
            raise CallFailed(operation, *self._random.choice(CODES))
        return await self._client.call(operation, **arguments)

    async def _sent(self, operation: str, arguments: dict[str, Any]) -> None:
        try:
            await self._client.call(operation, **arguments)
        except CallFailed as failure:
            assert failure.code in ("ConditionalCheckFailedException", "TransactionCanceledException")  # noqa: PT017 - its answer is lost, too


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


async def everything_is_there_and_once(url: str, table: str) -> None:
    async with open_client("dynamodb", threads=16, region=None, endpoint_url=url, profile=None) as client:
        throttled = Throttled(client, 11)
        ledger = DynamoLedger(table, cast(ThreadedClient, throttled), sleep=at_once)
        keys = [f"key-{number:02}" for number in range(COUNT)]
        await ledger.record_many([replace(ENTRY, key=key) for key in keys])
        for key in keys[:10]:
            assert await ledger.arrived("bucket", Notice(key=key, sequencer="0A", deleted=True, at="t")) is True
        verified = [
            Event(key=key, at="v", what="verified", etag="etag", detail={"algorithm": "sha256"}) for key in keys
        ]
        await ledger.note("bucket", verified)
        expected = [Expectation(key=key, algorithm="md5", digest="0", origin="m", imported_at="t") for key in keys]
        await ledger.expect("bucket", expected)
        work = Work(bucket="bucket", key="k", version_id=None, etag="e", algorithms=("sha256",))
        lease = await ledger.claim(work, "me", 60.0)
        assert isinstance(lease, Lease)
        lease = await ledger.renew(lease, 60.0, {"bytes": 64})
        assert isinstance(await ledger.claim(work, "you", 60.0), Held)
        assert throttled.refused > throttled.calls / 5

        refs = [ObjectRef(key, "etag", 5, "2026-01-01T00:00:00Z") for key in keys]
        assert await ledger.known("bucket", refs, ["sha256"]) == [{"sha256": SHA}] * COUNT
        found = [one async for one in ledger.subjects("bucket")]
        assert [one.key for one in found] == keys
        assert {one.versions[0].digests["sha256"].verified_at for one in found} == {"v"}
        assert [len(one.expectations) for one in found] == [1] * COUNT
        assert [one.deleted_at for one in found] == ["t"] * 10 + [None] * (COUNT - 10)
        for number, key in enumerate(keys):
            told = [one.what for one in await ledger.history("bucket", key)]
            assert sorted(told) == sorted(["recorded", "verified", "imported"] + ["deleted"] * (number < 10))
