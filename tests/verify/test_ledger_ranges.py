"""A verification over several invocations, and verifications of ranges of keys, read their own part of the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from auditor.aio.stop import Stop
from auditor.aws.client import ThreadedClient, open_client
from auditor.ledger.dynamodb.ledger import DynamoLedger
from auditor.ledger.dynamodb.table import SHARDS, first_sort_key, partitions
from auditor.model.target import Target
from tests.ledger.conftest import new_table
from tests.support.fakes.dynamodb import GeneratedTable
from tests.support.samples.reports import RUN
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.verification import Bench
from tests.verify.test_invocations import Deadline

PAGE = 250
"""Rows of one Query to a shard."""


class Reads:
    """A client that keeps the Queries to shards. first: the sort keys from which they read. items: what they read."""

    def __init__(self, client: ThreadedClient) -> None:
        self.region = client.region
        self.first: list[str] = []
        self.items = self.scans = 0
        self._client = client

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        answer = await self._client.call(operation, **arguments)
        self.scans += operation == "Scan"
        if operation == "Query" and arguments["ExpressionAttributeValues"][":pk"]["S"] in partitions(BUCKET):
            self.first.append(arguments["ExpressionAttributeValues"][":first"]["S"])
            self.items += len(answer["Items"])
        return answer


async def test_invocations_and_ranges_read_the_ledger_from_their_own_first_key_on(
    stub: StubServer, tmp_path: Path, moto_url: str
) -> None:
    async with open_client("dynamodb", threads=16, region=None, endpoint_url=moto_url, profile=None) as client:
        seen = Reads(client)
        ledger = DynamoLedger(await new_table(moto_url), cast(ThreadedClient, seen))
        await ledger.probe()
        bench = Bench(stub, ledger, tmp_path / "out")
        keys = [f"k{number:02}" for number in range(12)]
        await bench.recorded(*(bench.put(key, key.encode()) for key in keys))
        start_after, earlier, seen.scans = "", 0, 0
        while True:
            seen.first, seen.items = [], 0
            stop = Stop()
            stub.faults = [Deadline(stop, 6)]
            found = await bench.verify(stop=stop, verify_id=RUN, engine="direct", concurrency=1)
            assert seen.first == [first_sort_key("", start_after)] * SHARDS
            assert seen.items <= len([key for key in keys if key >= start_after])
            if found.summary["complete"]:
                break
            earlier += 1
            start_after = found.summary["resume"]["start_after"]
        assert earlier >= 1
        assert found.outcomes == {"match": 12}
        stub.faults, outcomes = [], 0
        for after, last in ((None, "k07"), ("k07", None)):
            seen.first = []
            found = await bench.verify(target=Target(BUCKET, start_after=after, stop_at=last))
            assert seen.first == [first_sort_key("", after or "")] * SHARDS
            outcomes += found.outcomes["match"]
        assert (outcomes, seen.scans) == (12, 0)


async def test_ranges_of_a_large_ledger_ask_for_their_rows_and_a_page_of_each_shard() -> None:
    keys = [f"photos/{number:06}.jpg" for number in range(8_000)]
    table = GeneratedTable("bucket", keys)
    ledger = DynamoLedger("digests", cast(ThreadedClient, table))
    await ledger.probe()
    each = len(keys) // 4
    found: list[str] = []
    for begin in range(0, len(keys), each):
        part = keys[begin : begin + each]
        table.asked.clear()
        table.items = 0
        records = ledger.subjects("bucket", "photos/", keys[begin - 1] if begin else "")
        async for one in records:
            found.append(one.key)
            if one.key == part[-1]:
                break
        await records.aclose()
        assert table.asked.keys() == {"Query"}
        assert table.items <= each + 2 * PAGE * SHARDS
        assert table.asked["Query"] <= each / PAGE + 2 * SHARDS
    assert found == keys
