"""The shared ledger on AWS's own DynamoDB for tests: every promise of a ledger, and DynamoDB's limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from msgspec.structs import replace

from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.ledger.dynamodb.changes import key_of
from auditor.ledger.dynamodb.ledger import create_table
from auditor.ledger.dynamodb.table import stored_name
from auditor.model.object import ObjectRef
from tests.conformance.ledgers import OpenLedger
from tests.conformance.ledgers.base import ENTRY
from tests.ledger.conftest import new_table, opening
from tests.ledger.test_suite import test_ledger_keeps_its_promise  # noqa: F401 - the whole suite runs here too
from tests.ledger.throttled import everything_is_there_and_once
from tests.system.real.dynamodb import DynamoDbLocal, dynamodb_local

BULK = "x" * 300_000


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamoDbLocal]:
    with dynamodb_local(tmp_path_factory.mktemp("dynamodb") / "server.log") as server:
        yield server


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCESS_KEY_ID": "testing", "SECRET_ACCESS_KEY": "testing", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)


@pytest.fixture
async def opener(local: DynamoDbLocal) -> OpenLedger:
    return opening(f"dynamodb:{await new_table(local.url)}", local.url)


@pytest.fixture
async def ledger(opener: OpenLedger) -> AsyncIterator[Ledger]:
    async with opener() as opened:
        yield opened


@pytest.fixture
async def table(local: DynamoDbLocal) -> str:
    name = f"table-{uuid4().hex}"
    await create_table(name, endpoint_url=local.url)
    return name


@pytest.fixture
def client(local: DynamoDbLocal) -> Iterator[Any]:
    session = boto3.Session("testing", "testing", region_name="us-east-1")
    with closing(session.client("dynamodb", endpoint_url=local.url)) as made:
        yield made


def fatten(client: Any, table: str, key: str, version: str = "null") -> dict[str, Any]:
    """Make the item of a recorded version 300 KB large, and return its key in the table."""
    name = key_of(stored_name((f"bucket/{key}", f"{version}#{ENTRY.etag}")))
    values = {":bulk": {"S": BULK}}
    client.update_item(
        TableName=table, Key=name, UpdateExpression="SET bulk_ = :bulk", ExpressionAttributeValues=values
    )
    return name


def ref(key: str, version: str | None = None) -> ObjectRef:
    return ObjectRef(key, "etag", 5, "2026-01-01T00:00:00Z", version_id=version)


def test_nothing_but_this_machine_reaches_the_server(local: DynamoDbLocal) -> None:
    port = f"{int(local.url.rpartition(':')[2]):04X}"
    listening = {
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{local.pid}/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port}")
    }
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert listening
    assert {address.partition(":")[0] for address in listening} <= loopback


async def test_16_megabytes_an_answer(local: DynamoDbLocal, table: str, client: Any) -> None:
    keys = [f"key-{number:03}" for number in range(80)]
    async with open_ledger(f"dynamodb:{table}", endpoint_url=local.url) as ledger:
        await ledger.record_many([replace(ENTRY, key=key) for key in keys])
        wanted = [fatten(client, table, key) for key in keys]
        answer = client.batch_get_item(RequestItems={table: {"Keys": wanted}})
        assert answer["UnprocessedKeys"], "else this test shows nothing"
        answers = await ledger.known("bucket", [ref(key) for key in keys], ["sha256"])
        assert answers == [dict(ENTRY.digests)] * len(keys)
        assert [one.key async for one in ledger.subjects("bucket")] == keys


async def test_a_megabyte_a_page_of_a_query(local: DynamoDbLocal, table: str, client: Any) -> None:
    versions = [f"v{number}" for number in range(8)]
    async with open_ledger(f"dynamodb:{table}", endpoint_url=local.url) as ledger:
        await ledger.record_many([replace(ENTRY, key="k", version_id=version) for version in versions])
        for version in versions:
            fatten(client, table, "k", version)
        assert await ledger.known("bucket", [ref("k")], ["sha256"]) == [dict(ENTRY.digests)]
        found = await ledger.subject("bucket", "k")
        assert found is not None
        assert len(found.versions) == 8


async def test_64_writers_of_one_digest_and_one_of_them_first(opener: OpenLedger) -> None:
    async with opener() as one, opener() as two:
        answers = await asyncio.gather(*((one, two)[number % 2].record(ENTRY) for number in range(64)))
        assert answers.count(True) == 1
        assert len(await one.history("bucket", ENTRY.key)) == 1


async def test_throttled_and_nothing_is_lost(local: DynamoDbLocal, table: str) -> None:
    await everything_is_there_and_once(local.url, table)
