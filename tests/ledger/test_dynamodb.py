"""The shared ledger: unusable tables, throttled reads, and rows of versions that the listing does not name."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zlib import crc32

import pytest
from msgspec.structs import replace

from auditor.aws.client import ThreadedClient
from auditor.errors import CallFailed, LedgerError
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry
from auditor.ledger.dynamodb.changes import key_of
from auditor.ledger.dynamodb.items import Item, seal_of
from auditor.ledger.dynamodb.ledger import DynamoLedger, create_table
from auditor.ledger.dynamodb.table import stored_name
from auditor.model.object import ObjectRef
from tests.ledger.conftest import dynamodb, new_table
from tests.ledger.throttled import everything_is_there_and_once

REF = ObjectRef("k", "e", 1, "2026-01-01T00:00:00Z")
ENTRY = Entry(bucket="b", key="k", version_id=None, etag="e", size=1, digests={"sha256": "00"}, hashed_at="then")


class Answers:
    """A client with prepared answers, one a call; it raises a CallFailed. It keeps the calls."""

    region = "eu-north-1"

    def __init__(self, *answers: dict[str, Any] | CallFailed) -> None:
        self._answers = list(answers)
        self.asked: list[SimpleNamespace] = []

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        self.asked.append(SimpleNamespace(operation=operation, **arguments))
        answer = self._answers.pop(0)
        if isinstance(answer, CallFailed):
            raise answer
        return answer


def ledger_of(client: Answers, pauses: list[float] | None = None) -> DynamoLedger:
    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)

    return DynamoLedger("digests", cast(ThreadedClient, client), sleep=sleep)


def item(sk: str, digest: str = "00", key: str = "k") -> dict[str, Any]:
    """An item as the table stores it, with its seal. sk: of its plain name."""
    made = {"pk": {"S": "b/k"}, "sk": {"S": sk}, "size": {"N": "1"}, "hashed_at": {"S": "t"}, "sha256": {"S": digest}}
    version, _ = Item(made).evidence("b", key)
    seals = {f"{name}_seal": {"S": seal_of("b", key, version, name)} for name in version.digests}
    return made | seals | key_of(stored_name((f"b/{key}", sk)))


async def test_unusable_tables_are_named_at_the_start(moto_url: str) -> None:
    client, schema = dynamodb(moto_url), {"pk": {"S": "-"}, "sk": {"S": "-"}, "format": {"N": "2"}}
    client.create_table(
        TableName="other-keys",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    newer, older, unsaid = [await new_table(moto_url) for _ in range(3)]
    client.put_item(TableName=newer, Item=schema)
    items = json.loads((Path(__file__).parent / "older" / "schema_3.json").read_text())
    for table, found in ((older, items), (unsaid, items[1:])):
        for one in found:
            client.put_item(TableName=table, Item=one)
    for name, sentence in (
        ("no-such", r"table 'no-such' in us-east-1 does not exist .*: create it"),
        ("other-keys", "its keys must be pk and sk"),
        (newer, rf"'{newer}' was written by a newer auditor \(format 2\): upgrade this one"),
        (older, f"'{older}' was written by a development version of the auditor .*: create a new table"),
        (unsaid, f"'{unsaid}' was written by a development version of the auditor .*: create a new table"),
    ):
        with pytest.raises(LedgerError, match=sentence):
            async with open_ledger(f"dynamodb:{name}", endpoint_url=moto_url):
                pass
    assert client.scan(TableName=older)["Count"] == len(items), "an older table stays as it is"


async def test_item_is_laid_out_as_the_contract_says(moto_url: str) -> None:
    table = await new_table(moto_url)
    async with open_ledger(f"dynamodb:{table}", endpoint_url=moto_url) as ledger:
        await ledger.record(ENTRY)
    items = dynamodb(moto_url).scan(TableName=table)["Items"]
    stored = {found["sk"]["S"]: found for found in items}
    line_name = " history#then#bc64b27e10535596510778b5a022629a"
    assert stored.keys() == {"-", "k\x01null#e", line_name}
    assert stored["-"] == {"pk": {"S": "-"}, "sk": {"S": "-"}, "format": {"N": "1"}}
    digest = {
        "size": {"N": "1"},
        "sha256": {"S": "00"},
        "sha256_source": {"S": "auditor"},
        "sha256_at": {"S": "then"},
        "sha256_bytes_read": {"N": "0"},
        "sha256_seal": {"S": "0fe8b13941a1ca920649dbfb384fdc03"},
    }
    shard = f"b#{crc32(b'k') % 16}"
    row = {"pk": {"S": shard}, "sk": {"S": "k\x01null#e"}, "hashed_at": {"S": "then"}}
    line = {
        "pk": {"S": "b/k"},
        "sk": {"S": line_name},
        "at": {"S": "then"},
        "what": {"S": "recorded"},
        "etag": {"S": "e"},
        "size": {"N": "1"},
        "detail": {
            "M": {
                "algorithm": {"S": "sha256"},
                "digest": {"S": "00"},
                "source": {"S": "auditor"},
                "bytes_read": {"S": "0"},
            }
        },
        "seal": {"S": "783c0db3680ab19bb34e24641fba86f5"},
    }
    first, second = (stored[name].pop("place") for name in ("k\x01null#e", line_name))
    assert int(first["N"]) < int(second["N"])
    assert stored["k\x01null#e"] == digest | row
    assert stored[line_name] == line


async def test_failure_is_one_sentence_that_names_the_table() -> None:
    for code, sentence in (
        ("AccessDeniedException", r"'digests' in eu-north-1 refuses BatchGetItem .*allow dynamodb:BatchGetItem"),
        ("UnrecognizedClientException", "refuses the credentials"),
        ("ConnectionError", "cannot be reached"),
        ("ItemCollectionSizeLimitExceededException", "fails at BatchGetItem: ItemCollectionSizeLimitExceeded"),
    ):
        with pytest.raises(LedgerError, match=sentence):
            await ledger_of(Answers(CallFailed("BatchGetItem", code, 400))).known("b", [REF], ["sha256"])
    throttled = Answers(*[CallFailed("UpdateItem", "ProvisionedThroughputExceededException", 400)] * 10)
    with pytest.raises(LedgerError, match=r"keeps refusing UpdateItem .*raise its capacity"):
        await ledger_of(throttled).record(ENTRY)
    with pytest.raises(LedgerError, match=r"too long for DynamoDB: use sqlite:PATH"):
        await ledger_of(Answers()).record(replace(ENTRY, key="k" * 2047))


async def test_unprocessed_reads_are_sent_again_after_growing_pauses() -> None:
    left = {"digests": {"Keys": [{"pk": {"S": "b/k"}, "sk": {"S": "null#e"}}]}}
    client = Answers(
        {"Responses": {}, "UnprocessedKeys": left},
        {"Responses": {}, "UnprocessedKeys": left},
        {"Responses": {"digests": [item("null#e")]}, "UnprocessedKeys": {}},
    )
    pauses: list[float] = []
    assert await ledger_of(client, pauses).known("b", [REF], ["sha256"]) == [{"sha256": "00"}]
    assert client.asked[2].RequestItems["digests"]["Keys"] == left["digests"]["Keys"]
    assert len(pauses) == 2
    assert 0 < pauses[0] <= 0.1
    assert 0 < pauses[1] <= 0.2
    with pytest.raises(LedgerError, match="left 1 reads unprocessed after 10 attempts"):
        await ledger_of(Answers(*[{"Responses": {}, "UnprocessedKeys": left}] * 10)).known("b", [REF], ["sha256"])


async def test_table_that_is_named_by_its_arn(moto_url: str) -> None:
    for _ in range(2):  # a table that is there is left as it is
        await create_table("by-arn", endpoint_url=moto_url)
    arn = dynamodb(moto_url).describe_table(TableName="by-arn")["Table"]["TableArn"]
    async with open_ledger(f"dynamodb:{arn}", endpoint_url=moto_url) as ledger:
        assert await ledger.record(ENTRY)
        assert await ledger.known("b", [REF], ["sha256"]) == [{"sha256": "00"}]


@pytest.mark.slow
async def test_throttled_and_nothing_is_lost(moto_url: str) -> None:
    await everything_is_there_and_once(moto_url, await new_table(moto_url))
