"""The shards of the shared ledger: keys in order, reads that leave out the history, and tables of earlier schemas."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import boto3
import pytest

from auditor.aws.client import ThreadedClient, open_client
from auditor.errors import CallFailed, LedgerError, LedgerReadOnlyError
from auditor.ledger.base import Event, Ledger
from auditor.ledger.dynamodb.items import WHOLE_KEY
from auditor.ledger.dynamodb.layout import REREAD_SECONDS
from auditor.ledger.dynamodb.ledger import DynamoLedger, create_table
from auditor.ledger.dynamodb.merging import KeyReading, keys_in_order
from auditor.ledger.dynamodb.shards import SHARDS, cut_key, own_name, partitions, stored_name
from auditor.ledger.dynamodb.table import Table
from tests.conformance.ledgers.base import ENTRY, KEY, SHA, all_subjects, lines

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


@pytest.mark.parametrize("seed", [1, 2])
def test_name_fits_into_a_sort_key_and_is_read_back(seed: int) -> None:
    for key in keys(seed):
        for name in NAMES:
            item = stored(key, name)
            assert item["pk"]["S"] in partitions("bucket")
            assert len(item["sk"]["S"].encode()) <= 1024
            own = own_name(item)
            assert own["pk"]["S"] == f"bucket/{key}"
            assert own["sk"]["S"] == name or "v" * 500 in name


READING: KeyReading[int] = KeyReading(lambda _, items: len(items), 250, 250)


class Pages:
    """A table with the items of these keys, in pages of `size` items."""

    sharded = True

    def __init__(self, found: list[str], size: int) -> None:
        self._items = sorted((stored(key, name) for key in found for name in NAMES), key=lambda one: one["sk"]["S"])
        self._size = size
        self.read = 0

    async def pages(self, operation: str, **arguments: Any) -> AsyncGenerator[list[Any], None]:
        assert operation == "Query"
        values = {name: value["S"] for name, value in arguments["ExpressionAttributeValues"].items()}
        found = [one for one in self._items if one["pk"]["S"] == values[":pk"] and one["sk"]["S"] >= values[":first"]]
        for start in range(0, len(found), self._size):
            self.read += 1
            yield [own_name(one) for one in found[start : start + self._size]]


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("prefix", ["", "a", "\x01", HEAD, HEAD + "é\0"])
async def test_keys_come_in_order_with_all_of_their_items(size: int, prefix: str) -> None:
    wanted = keys(3, 20)
    for after in ("", wanted[len(wanted) // 2], HEAD + "aé", "\0"):
        table = Pages(wanted, size)
        reading = keys_in_order(cast(Table, table), "bucket", prefix, after, READING)
        found = [(pk.partition("/")[2], count) async for pk, count in reading]
        assert [key for key, _ in found] == sorted({key for key, _ in found})
        below = [(key, count) for key, count in found if key.startswith(prefix) and key > after]
        assert below == [(key, len(NAMES)) for key in wanted if key.startswith(prefix) and key > after]


async def test_the_shards_of_a_prefix_are_not_read_beyond_it() -> None:
    table = Pages([f"{letter}{number:03}" for letter in "abc" for number in range(200)], 10)
    assert len([one async for one in keys_in_order(cast(Table, table), "bucket", "a", "a190", READING)]) < 200
    assert table.read < 4 * SHARDS


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
async def opened(url: str, table: str, *denied: str, shards: bool = True) -> AsyncIterator[tuple[Ledger, Seen]]:
    async with open_client("dynamodb", threads=16, region=None, endpoint_url=url, profile=None) as client:
        seen = Seen(client)
        seen.denied = {*denied}
        ledger = DynamoLedger(table, cast(ThreadedClient, seen), shards=shards)
        await ledger.probe()
        yield ledger, seen


@pytest.fixture
async def table(moto_url: str) -> SimpleNamespace:
    """A new table, and its items by sort key."""
    name = f"ledger-{uuid4().hex}"
    await create_table(name, endpoint_url=moto_url)
    client = boto3.client("dynamodb", endpoint_url=moto_url)

    def put(**item: str) -> None:
        values = {attribute: {"S": value} for attribute, value in item.items() if attribute != "size"}
        client.put_item(TableName=name, Item=values | {"size": {"N": "5"}})

    def schema() -> int:
        return int(client.get_item(TableName=name, Key={"pk": {"S": "-"}, "sk": {"S": "-"}})["Item"]["schema"]["N"])

    def begin(version: int) -> None:
        item = {"pk": {"S": "-"}, "sk": {"S": "-"}, "schema": {"N": str(version)}}
        client.put_item(TableName=name, Item=item)

    def partitions_of(letters: str) -> set[str]:
        items = client.scan(TableName=name)["Items"]
        return {one["pk"]["S"] for one in items if one["sk"]["S"].endswith(letters)}

    return SimpleNamespace(name=name, url=moto_url, put=put, schema=schema, begin=begin, partitions_of=partitions_of)


async def test_verifying_reads_no_history(table: Any) -> None:
    async with opened(table.url, table.name) as (ledger, seen):
        await ledger.record_many([replace(ENTRY, key=key) for key in "abc"])
        await ledger.note("bucket", [Event(key="a", at=f"2026-{n}", what="missing") for n in range(20)])
        seen.asked.clear()
        assert [one.key for one in await all_subjects(ledger)] == ["a", "b", "c"]
        assert seen.asked == {"Query": SHARDS}
        assert [one.key async for one in ledger.subjects("bucket", "", "a")] == ["b", "c"]


async def test_table_that_was_begun_without_shards_goes_on_so(table: Any) -> None:
    """Auditors of the schema that its item names read and write it still."""
    table.put(pk=f"bucket/{KEY}", sk="v1#etag", hashed_at="2026", sha256=SHA)
    with pytest.raises(LedgerError, match=r"has items without shards: .* or give it shards by auditor ledger --shard"):
        async with opened(table.url, table.name):
            pass
    async with opened(table.url, table.name, shards=False) as (ledger, seen):
        await ledger.record(ENTRY)
        assert table.schema() == 2
        assert table.partitions_of("#etag") == {f"bucket/{KEY}"}
        (found,) = await all_subjects(ledger)
        assert {one.version_id for one in found.versions} == {"null", "v1"}
        assert seen.asked["Scan"]
    async with opened(table.url, table.name, shards=False) as (ledger, seen):
        assert await ledger.subject("bucket", KEY) == found
        assert len(await lines(ledger)) == 2
        assert not seen.asked["Scan"]


async def test_table_keeps_the_shards_that_it_was_begun_with(table: Any) -> None:
    async with opened(table.url, table.name, shards=False) as (late, _):  # it has seen an empty table
        async with opened(table.url, table.name) as (ledger, seen):
            assert (table.schema(), seen.asked["Scan"]) == (3, 1)
            await ledger.record(ENTRY)
        await late.record(replace(ENTRY, key="b"))
        assert await late.subject("bucket", KEY) is not None
    async with opened(table.url, table.name, "Scan", shards=False) as (ledger, _):
        assert [one.key for one in await all_subjects(ledger)] == [KEY, "b"]
    async with opened(table.url, table.name, "Scan"):
        pass
    assert {"/" in pk for pk in table.partitions_of("null#etag")} == {False}


async def test_new_table_gets_shards_by_the_first_write_and_by_no_read(table: Any) -> None:
    async with opened(table.url, table.name, shards=False) as (ledger, seen):
        assert await ledger.subject("bucket", KEY) is None
        assert seen.asked.keys() == {"GetItem", "Query"}
        await ledger.record(ENTRY)
        await ledger.record(replace(ENTRY, key="b"))
        assert seen.asked["Scan"] == 1
    assert table.schema() == 3
    assert {"/" in pk for pk in table.partitions_of("null#etag")} == {False}


async def test_new_table_of_a_role_that_may_not_scan_goes_on_without_shards(
    table: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(table.url, table.name, "Scan", shards=False) as (ledger, _):
        await ledger.record(ENTRY)
        assert await ledger.subject("bucket", KEY) is not None
    assert table.schema() == 2
    assert "allow dynamodb:Scan" in caplog.text
    assert "goes on without shards" in caplog.text


async def test_two_begin_a_table_at_once_and_the_first_one_decides(table: Any) -> None:
    """Another release, which knows no shards, writes between the look at the empty table and the declaration."""
    asking = open_client("dynamodb", threads=1, region=None, endpoint_url=table.url, profile=None)
    async with asking as client:

        class Overtaken(Seen):
            async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
                answer = await super().call(operation, **arguments)
                if operation == "Scan":
                    table.begin(2)
                return answer

        late = DynamoLedger(table.name, cast(ThreadedClient, Overtaken(client)), shards=True)
        with pytest.raises(LedgerError, match="has items without shards"):
            await late.probe()
        usual = DynamoLedger(table.name, cast(ThreadedClient, Overtaken(client)))
        await usual.probe()
        await usual.record(ENTRY)
    assert table.schema() == 2
    assert table.partitions_of("null#etag") == {f"bucket/{KEY}"}


async def test_long_lived_writer_notices_that_its_table_was_given_shards(table: Any) -> None:
    now = 1000.0
    table.begin(2)
    async with open_client("dynamodb", threads=16, region=None, endpoint_url=table.url, profile=None) as client:
        ledger = DynamoLedger(table.name, client, clock=lambda: now)
        await ledger.probe()
        await ledger.record(ENTRY)
        table.begin(3)
        await ledger.record(replace(ENTRY, key="b"))
        now += REREAD_SECONDS + 1
        await ledger.record(replace(ENTRY, key="c"))
    assert {pk.partition("/")[2] for pk in table.partitions_of("null#etag")} == {KEY, "b", ""}


async def test_writes_that_are_denied_are_told_as_a_ledger_that_can_be_read(table: Any) -> None:
    async with opened(table.url, table.name, "UpdateItem", shards=False) as (ledger, _):
        with pytest.raises(LedgerReadOnlyError, match="allow dynamodb:UpdateItem"):
            await ledger.note("bucket", [Event(key=KEY, at="2026", what="missing")])
