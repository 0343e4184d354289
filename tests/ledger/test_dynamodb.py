"""The shared ledger: unusable tables, throttled reads, and rows of versions that the listing does not name."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast
from zlib import crc32

import boto3
import pytest
from msgspec.structs import replace

from auditor.aws.client import ThreadedClient
from auditor.errors import CallFailed, LedgerError
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry, Event, Expectation, Notice
from auditor.ledger.dynamodb.changes import Change, key_of
from auditor.ledger.dynamodb.items import NOTICE, Item, manifest, seal_of
from auditor.ledger.dynamodb.ledger import DynamoLedger, create_table
from auditor.ledger.dynamodb.shards import stored_name
from auditor.ledger.dynamodb.table import ConditionFailed, Table
from auditor.ledger.matching import LedgerRow
from auditor.model.object import ObjectRef
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


def plain(sk: str, digest: str = "00") -> dict[str, Any]:
    """An item under its plain name."""
    return {"pk": {"S": "b/k"}, "sk": {"S": sk}, "size": {"N": "1"}, "hashed_at": {"S": "t"}, "sha256": {"S": digest}}


def sealed(made: dict[str, Any], key: str) -> dict[str, Any]:
    version, _ = Item(made).evidence("b", key)
    return made | {f"{name}_seal": {"S": seal_of("b", key, version, name)} for name in version.digests}


def item(sk: str, digest: str = "00", key: str = "k", **more: str) -> dict[str, Any]:
    """The same item as the table stores it, with its seal and these attributes. sk: of its plain name."""
    made = sealed(plain(sk, digest) | {name: {"S": one} for name, one in more.items()}, key)
    return made | key_of(stored_name((f"b/{key}", sk)))


async def test_missing_table_is_named_at_the_start(moto_url: str) -> None:
    with pytest.raises(LedgerError, match=r"table 'no-such' in us-east-1 does not exist .*: create it"):
        async with open_ledger("dynamodb:no-such", endpoint_url=moto_url):
            pass


async def test_table_with_other_keys(moto_url: str) -> None:
    boto3.client("dynamodb", endpoint_url=moto_url).create_table(
        TableName="other-keys",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    with pytest.raises(LedgerError, match="its keys must be pk and sk"):
        async with open_ledger("dynamodb:other-keys", endpoint_url=moto_url):
            pass


async def test_table_is_made_once_and_left_as_it_is(moto_url: str) -> None:
    await create_table("made-twice", endpoint_url=moto_url)
    async with open_ledger("dynamodb:made-twice", endpoint_url=moto_url) as ledger:
        await ledger.record(ENTRY)
    await create_table("made-twice", endpoint_url=moto_url)
    async with open_ledger("dynamodb:made-twice", endpoint_url=moto_url) as ledger:
        assert await ledger.known("b", [REF], ["sha256"]) == [{"sha256": "00"}]


async def test_item_is_laid_out_as_the_contract_says(moto_url: str) -> None:
    await create_table("layout", endpoint_url=moto_url)
    async with open_ledger("dynamodb:layout", endpoint_url=moto_url) as ledger:
        await ledger.record(ENTRY)
    items = boto3.client("dynamodb", endpoint_url=moto_url).scan(TableName="layout")["Items"]
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


async def test_items_that_change_at_every_try_end_the_run(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tries, update = [], Table.update

    async def overtaken(table: Table, change: Change) -> None:
        if change.name[1] not in (NOTICE, manifest("md5", "sums")):
            await update(table, change)
            return
        tries.append(change)
        raise ConditionFailed

    await create_table("overtaken", endpoint_url=moto_url)
    async with open_ledger("dynamodb:overtaken", endpoint_url=moto_url) as ledger:
        monkeypatch.setattr(Table, "update", overtaken)
        with pytest.raises(LedgerError, match="'k' arrive too fast for the ledger table 'overtaken'"):
            await ledger.arrived("b", Notice(key="k", sequencer="05", deleted=True, at="then"))
        assert len(tries) == 10
        expected = Expectation(key="k", algorithm="md5", digest="00", origin="sums", imported_at="then")
        with pytest.raises(LedgerError, match="'overtaken' changes while it is being written"):
            await ledger.expect("b", [expected])


async def test_table_of_a_newer_auditor(moto_url: str) -> None:
    await create_table("newer", endpoint_url=moto_url)
    schema = {"pk": {"S": "-"}, "sk": {"S": "-"}, "format": {"N": "2"}}
    boto3.client("dynamodb", endpoint_url=moto_url).put_item(TableName="newer", Item=schema)
    with pytest.raises(LedgerError, match=r"'newer' was written by a newer auditor \(format 2\): upgrade this one"):
        async with open_ledger("dynamodb:newer", endpoint_url=moto_url):
            pass


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("AccessDeniedException", r"'digests' in eu-north-1 refuses BatchGetItem .*allow dynamodb:BatchGetItem"),
        ("UnrecognizedClientException", "refuses the credentials"),
        ("ConnectionError", "cannot be reached"),
        ("ItemCollectionSizeLimitExceededException", "fails at BatchGetItem: ItemCollectionSizeLimitExceeded"),
    ],
)
async def test_failure_is_one_sentence_that_names_the_table(code: str, sentence: str) -> None:
    with pytest.raises(LedgerError, match=sentence):
        await ledger_of(Answers(CallFailed("BatchGetItem", code, 400))).known("b", [REF], ["sha256"])


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


async def test_reads_that_stay_unprocessed_are_an_error_not_an_unknown_object() -> None:
    left = {"digests": {"Keys": [{"pk": {"S": "b/k"}, "sk": {"S": "null#e"}}]}}
    client = Answers(*[{"Responses": {}, "UnprocessedKeys": left}] * 10)
    with pytest.raises(LedgerError, match="left 1 reads unprocessed after 10 attempts"):
        await ledger_of(client).known("b", [REF], ["sha256"])


async def test_unversioned_ref_is_looked_for_page_by_page_under_every_version() -> None:
    client = Answers(
        {"Responses": {}},
        {"Items": [], "LastEvaluatedKey": {"pk": {"S": "b/k"}, "sk": {"S": "x"}}},
        {"Items": [item("v7#e"), item("v8#other", "11")]},
    )
    assert await ledger_of(client).known("b", [REF], ["sha256"]) == [{"sha256": "00"}]
    assert client.asked[2].ExclusiveStartKey == {"pk": {"S": "b/k"}, "sk": {"S": "x"}}


async def test_versioned_ref_needs_no_query() -> None:
    client = Answers({"Responses": {}}, {"Responses": {"digests": []}})
    versioned = ObjectRef("k", "e", 1, "2026-01-01T00:00:00Z", version_id="v1")
    assert await ledger_of(client).known("b", [versioned], ["sha256"]) == [{}]
    asked = [[key["sk"]["S"] for key in one.RequestItems["digests"]["Keys"]] for one in client.asked]
    assert asked == [["k\x01v1#e"], ["k\x01null#e"]]


async def test_item_deleted_between_the_refusal_and_the_read_is_written() -> None:
    refused = CallFailed("UpdateItem", "ConditionalCheckFailedException", 400)
    client = Answers(refused, {}, {})
    assert await ledger_of(client).record(ENTRY) is True
    assert client.asked[1].ConsistentRead is True


async def test_record_of_a_key_has_what_was_written_just_before() -> None:
    client = Answers({"Items": [item("null#e")]})
    assert await ledger_of(client).subject("b", "k") is not None
    assert client.asked[0].ConsistentRead is True


async def test_table_that_is_named_by_its_arn(moto_url: str) -> None:
    await create_table("by-arn", endpoint_url=moto_url)
    arn = boto3.client("dynamodb", endpoint_url=moto_url).describe_table(TableName="by-arn")["Table"]["TableArn"]
    async with open_ledger(f"dynamodb:{arn}", endpoint_url=moto_url) as ledger:
        assert await ledger.record(ENTRY)
        assert await ledger.known("b", [REF], ["sha256"]) == [{"sha256": "00"}]


@pytest.mark.parametrize("called", ["digests", "arn:aws:dynamodb:eu-north-1:123456789012:table/digests"])
async def test_the_table_may_answer_under_either_of_its_names(called: str) -> None:
    left = {"UnprocessedKeys": {called: {"Keys": [{"pk": {"S": "b/k"}, "sk": {"S": "null#e"}}]}}, "Responses": {}}
    client = Answers(left, {"Responses": {called: [item("null#e")]}})
    assert await ledger_of(client, []).known("b", [REF], ["sha256"]) == [{"sha256": "00"}]
    assert [one.operation for one in client.asked] == ["BatchGetItem", "BatchGetItem"]


@pytest.mark.slow
async def test_throttled_and_nothing_is_lost(moto_url: str) -> None:
    await create_table("throttled", endpoint_url=moto_url)
    await everything_is_there_and_once(moto_url, "throttled")


async def test_table_that_stays_throttled_is_named_after_growing_pauses() -> None:
    client = Answers(*[CallFailed("UpdateItem", "ProvisionedThroughputExceededException", 400)] * 10)
    pauses: list[float] = []
    with pytest.raises(LedgerError, match=r"keeps refusing UpdateItem .*raise its capacity"):
        await ledger_of(client, pauses).record(ENTRY)
    assert len(pauses) == 9
    assert pauses[0] < pauses[3] < pauses[6]
    assert max(pauses) <= 5


async def test_key_that_is_too_long_for_dynamodb() -> None:
    with pytest.raises(LedgerError, match=r"too long for DynamoDB: use sqlite:PATH"):
        await ledger_of(Answers()).record(replace(ENTRY, key="k" * 2047))


async def test_line_of_the_history_is_written_so_that_nothing_replaces_it() -> None:
    client = Answers({})
    await ledger_of(client).note("b", [Event(key="k", at="2026", what="missing", detail={"why": "x"})])
    (asked,) = client.asked
    assert asked.Key["sk"]["S"].startswith(" history#2026#")
    assert asked.UpdateExpression.count("if_not_exists") == asked.UpdateExpression.count(" = ") == 5


def batches(sk: str, refs: Sequence[ObjectRef], **more: str) -> list[dict[str, Any]]:
    """Answers to BatchGetItem: of each object the item with this sk."""
    items = [item(sk, key=ref.key, **more) for ref in refs]
    return [{"Responses": {"digests": items[start : start + 100]}} for start in range(0, len(items), 100)]


@pytest.mark.parametrize("version", [None, "v7"])
async def test_known_objects_are_one_request_in_a_hundred(version: str | None) -> None:
    refs = [replace(REF, key=f"k{number}", version_id=version) for number in range(250)]
    client = Answers(*batches(f"{version or 'null'}#e", refs))
    assert await ledger_of(client).known("b", refs, ["sha256"]) == [{"sha256": "00"}] * 250
    assert [one.operation for one in client.asked] == ["BatchGetItem"] * 3


async def test_unversioned_ref_of_which_versions_have_two_digests_has_none() -> None:
    client = Answers({"Responses": {}}, {"Items": [item("v7#e"), item("v8#e", "11")]})
    assert await ledger_of(client).known("b", [REF], ["sha256"]) == [{}]


async def test_match_is_a_line_and_then_the_time_in_its_row() -> None:
    client = Answers({}, CallFailed("UpdateItem", "ConditionalCheckFailedException", 400))
    detail = {"algorithm": "sha256", "digest": "00", "origin": "ledger"}
    match = Event(key="k", at="2026", what="verified", version_id="null", etag="e", size=1, detail=detail)
    await ledger_of(client).note("b", [match])
    line, row = client.asked
    assert (line.operation, row.operation) == ("UpdateItem", "UpdateItem")
    assert line.Key["sk"]["S"].startswith(" history#2026#")
    assert row.Key["sk"]["S"] == "k\x01null#e"
    assert "attribute_exists" in row.ConditionExpression


def test_look_up_takes_the_digests_that_the_whole_evidence_calls_undamaged() -> None:
    chance, states = random.Random(7), set()
    values = ["", "s3", "auditor", "2026-01-02T03:04:05Z", "00", "11", "é\n"]
    for _ in range(2_000):
        made = plain(chance.choice(["null#e", "v1#e", "sha256:00"]))
        for name in ("version_id", "etag", "sha256_source", "sha256_at", "hashed_at", "md5", "md5_at", "md5_source"):
            if chance.random() < 0.4:
                made[name] = {"S": chance.choice(values)}
        for name in ("sha256_bytes_read", "md5_bytes_read"):
            if chance.random() < 0.4:
                made[name] = {"N": str(chance.randint(0, 1))}
        drawn, _ = Item(made).evidence("b", "k")
        for name in drawn.digests:
            if chance.random() < 0.7:
                made[f"{name}_seal"] = {"S": seal_of("b", "k", drawn, name)}
            if chance.random() < 0.2:
                made[chance.choice([name, "size", f"{name}_at"])] = {"S": "22", "N": "2"}
        version, _ = Item(made).evidence("b", "k")
        damaged = {name for name, known in version.digests.items() if known.damaged}
        digests = {name: known.digest for name, known in version.digests.items() if not known.damaged}
        expected = LedgerRow(version.version_id, version.etag, version.size, digests)
        assert Item(made).checked_row("b", "k") == (expected, bool(damaged))
        states.add((bool(digests), bool(damaged)))
    assert states == {(True, True), (True, False), (False, True)}
