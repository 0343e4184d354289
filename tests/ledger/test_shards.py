"""The shards of the shared ledger: keys in order, reads that leave out the history, and the first write."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from auditor.aws.client import ThreadedClient, open_client
from auditor.errors import CallFailed, LedgerError, LedgerReadOnlyError
from auditor.ledger.base import Event, Ledger
from auditor.ledger.dynamodb.items import WHOLE_KEY
from auditor.ledger.dynamodb.ledger import DynamoLedger
from auditor.ledger.dynamodb.ordered import KeyReading, keys_in_order
from auditor.ledger.dynamodb.table import SHARDS, Table, cut_key, own_name, stored_name
from tests.conformance.ledgers.base import ENTRY, KEY, all_subjects
from tests.ledger.conftest import dynamodb, new_table

FORMAT = {"pk": {"S": "-"}, "sk": {"S": "-"}, "format": {"N": "1"}}
HEAD = "h" * 868
LETTERS = ["\0", "\x01", "\x02", " ", "a", "é", "\ufffd", "\U0010fffd", "\U0010ffff"]
NAMES = ["null#etag", "v1#etag", " notice", " told#null#-listed", "v" * 500 + "#e", " told#" + "v" * 500 + "#e"]


def keys(seed: int, count: int = 200) -> list[str]:
    """Keys of odd letters; half of them begin alike and are about as long as a sort key allows."""
    chance = random.Random(seed)
    short = ["".join(chance.choices(LETTERS, k=chance.randint(1, 6))) for _ in range(count)]
    return sorted({*short, *(HEAD + key for key in short), HEAD, "é" * 512, "\0" * 1024})


def stored(key: str, name: str) -> dict[str, Any]:
    pk, sk = stored_name((f"bucket/{key}", name))
    whole = cut_key((f"bucket/{key}", name))
    return {"pk": {"S": pk}, "sk": {"S": sk}} | ({WHOLE_KEY: {"S": whole}} if whole is not None else {})


READING: KeyReading[int] = KeyReading(lambda _, items: len(items), 250, 250)


class Pages:
    """A table with the items of these keys, in pages of `size` items."""

    def __init__(self, found: list[str], size: int) -> None:
        self._items = sorted((stored(key, name) for key in found for name in NAMES), key=lambda one: one["sk"]["S"])
        self._size = size

    async def pages(self, operation: str, **arguments: Any) -> AsyncGenerator[list[Any], None]:
        assert operation == "Query"
        values = {name: value["S"] for name, value in arguments["ExpressionAttributeValues"].items()}
        found = [one for one in self._items if one["pk"]["S"] == values[":pk"] and one["sk"]["S"] >= values[":first"]]
        for start in range(0, len(found), self._size):
            yield [own_name(one) for one in found[start : start + self._size]]


async def test_keys_come_in_order_with_all_of_their_items() -> None:
    wanted = keys(3, 6)
    afters = ("", wanted[len(wanted) // 2], HEAD + "aé", "\0")
    for size, prefix, after in product((1, 100), ("", "a", "\x01", HEAD, HEAD + "é\0"), afters):
        reading = keys_in_order(cast(Table, Pages(wanted, size)), "bucket", prefix, after, READING)
        found = [(pk.partition("/")[2], count) async for pk, count in reading]
        assert [key for key, _ in found] == sorted({key for key, _ in found})
        below = [(key, count) for key, count in found if key.startswith(prefix) and key > after]
        assert below == [(key, len(NAMES)) for key in wanted if key.startswith(prefix) and key > after], prefix


class Seen:
    """A client that counts the operations, and refuses those in `denied`."""

    def __init__(self, client: ThreadedClient) -> None:
        self.region = client.region
        self.asked: Counter[str] = Counter()
        self.denied: set[str] = set()
        self._client = client

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        self.asked[operation] += 1
        if operation in self.denied:
            raise CallFailed(operation, "AccessDeniedException", 400)
        return await self._client.call(operation, **arguments)


@asynccontextmanager
async def opened(url: str, table: str, *denied: str) -> AsyncIterator[tuple[Ledger, Seen]]:
    async with open_client("dynamodb", threads=4, region=None, endpoint_url=url, profile=None) as client:
        seen = Seen(client)
        seen.denied = {*denied}
        ledger = DynamoLedger(table, cast(ThreadedClient, seen))
        await ledger.probe()
        yield ledger, seen


@pytest.fixture
async def table(moto_url: str) -> SimpleNamespace:
    """A new table, and its items."""
    name, client = await new_table(moto_url), dynamodb(moto_url)

    return SimpleNamespace(name=name, url=moto_url, items=lambda: client.scan(TableName=name)["Items"])


async def test_verifying_reads_no_history(table: Any) -> None:
    async with opened(table.url, table.name) as (ledger, seen):
        await ledger.record_many([replace(ENTRY, key=key) for key in "abc"])
        await ledger.note("bucket", [Event(key="a", at=f"2026-{n}", what="missing") for n in range(5)])
        seen.asked.clear()
        assert [one.key for one in await all_subjects(ledger)] == ["a", "b", "c"]
        assert seen.asked == {"Query": SHARDS}
        assert [one.key async for one in ledger.subjects("bucket", "", "a")] == ["b", "c"]


async def test_first_write_to_a_table_says_the_format_and_no_read_does(table: Any) -> None:
    async with opened(table.url, table.name) as (ledger, seen):
        assert await ledger.subject("bucket", KEY) is None
        assert seen.asked == {"GetItem": 1, "Scan": 1, "Query": 1}
        assert table.items() == []
        await asyncio.gather(ledger.record(ENTRY), ledger.record(replace(ENTRY, key="b")))
        assert seen.asked["UpdateItem"] == 1
    assert FORMAT in table.items()
    assert {"/" in one["pk"]["S"] for one in table.items() if one["sk"]["S"].endswith("null#etag")} == {False}
    async with opened(table.url, table.name, "Scan") as (ledger, _):
        assert [one.key for one in await all_subjects(ledger)] == [KEY, "b"]


async def test_role_that_may_not_do_something_is_told_so(table: Any) -> None:
    with pytest.raises(LedgerError, match="allow dynamodb:Scan"):
        async with opened(table.url, table.name, "Scan"):
            pass
    async with opened(table.url, table.name, "UpdateItem") as (ledger, _):
        with pytest.raises(LedgerReadOnlyError, match="allow dynamodb:UpdateItem"):
            await ledger.note("bucket", [Event(key=KEY, at="2026", what="missing")])
