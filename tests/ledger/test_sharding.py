"""`auditor ledger --shard`: an old table gets shards while it is in use; nothing is lost or counts too early."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import boto3
import pytest

from auditor.aws.client import ThreadedClient, open_client
from auditor.cli.main import main
from auditor.errors import CallFailed, LedgerError
from auditor.ledger import open_ledger
from auditor.ledger.base import DAMAGED, Checked, Event, Expectation, HistoryEntry, KeyRecord, Notice
from auditor.ledger.dynamodb.items import STATE
from auditor.ledger.dynamodb.ledger import DynamoLedger
from auditor.ledger.dynamodb.row_merge import CopiesDiffer, merged
from auditor.ledger.dynamodb.shards import partitions
from auditor.ledger.leases import Lease, Work
from auditor.ledger.sharding import CopiedRows
from tests.conformance.ledgers.base import ENTRY, KEY, MD5, ODD_KEYS, OTHER, SHA, all_subjects
from tests.ledger.conftest import new_table
from tests.ledger.throttled import Throttled, at_once

LONG = ["h" * 900 + letter for letter in ("", "a", "b/", "é")]
WORK = Work(bucket="bucket", key="k", version_id=None, etag="e", algorithms=("sha256",))
VERIFIED = Event(
    key=KEY,
    at="2026-05-01T00:00:00Z",
    what="verified",
    version_id="null",
    etag="etag",
    size=5,
    detail={"algorithm": "sha256", "digest": SHA, "origin": "ledger"},
)


class Client:
    """A client that calls `before` with each operation first. before: None for nothing."""

    def __init__(self, client: ThreadedClient) -> None:
        self.region = client.region
        self.asked: Counter[str] = Counter()
        self.before: Callable[[str, dict[str, Any]], Any] | None = None
        self._client = client

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        self.asked[operation] += 1
        if self.before is not None:
            await self.before(operation, arguments)
        return await self._client.call(operation, **arguments)


class Old:
    """A table without shards, and ways to open it."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.url = url
        self.items = boto3.resource("dynamodb", endpoint_url=url).Table(name)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[DynamoLedger, Client]]:
        async with open_client("dynamodb", threads=16, region=None, endpoint_url=self.url, profile=None) as client:
            made = Client(client)
            ledger = DynamoLedger(self.name, cast(ThreadedClient, made), sleep=at_once)
            await ledger.probe()
            yield ledger, made

    async def shard(self, stop: Callable[[], bool] = lambda: False) -> list[CopiedRows]:
        """Give the table shards, and return the sums of each pass."""
        passes: dict[int, CopiedRows] = {}

        def add(part: CopiedRows) -> None:
            so_far = passes.get(part.number, CopiedRows(part.number, 0, 0))
            rows, written = so_far.rows + part.rows, so_far.written + part.written
            passes[part.number] = CopiedRows(part.number, rows, written, so_far.conflicts + part.conflicts)

        async with self.opened() as (ledger, _):
            assert await ledger.give_shards(add, stop) is not stop()
        return [*passes.values()]

    def schema(self) -> int:
        return int(self.items.get_item(Key={"pk": "-", "sk": "-"})["Item"]["schema"])

    def rows(self) -> list[Any]:
        return [one for one in self.items.scan()["Items"] if "/" in one["pk"] and one["sk"] >= STATE]

    def copies(self) -> list[Any]:
        return [one for one in self.items.scan()["Items"] if one["pk"] in partitions("bucket")]


@pytest.fixture
async def old(moto_url: str) -> Old:
    return Old(moto_url, await new_table(moto_url, shards=False))


State = tuple[list[KeyRecord], list[list[HistoryEntry]], list[Checked]]


async def state(ledger: DynamoLedger) -> State:
    """All that a ledger says of the bucket."""
    records = await all_subjects(ledger)
    histories = [one async for one in ledger.histories("bucket")]
    checked = [one async for part in ledger.checked() for one in part]
    return records, histories, sorted(checked, key=lambda one: (one.key, one.kind, one.words))


async def fill(ledger: DynamoLedger, keys: list[str], seed: int = 1) -> None:
    chance = random.Random(seed)
    for key in keys:
        version = chance.choice((None, "v1", "v" * 300, "v#2"))
        entry = replace(ENTRY, key=key, version_id=version, etag=chance.choice(("etag", "e#1", "é" * 200)))
        await ledger.record(entry)
        if chance.random() < 0.5:
            await ledger.record(replace(entry, digests={"md5": MD5}, source="s3"))
        for number in range(chance.choice((0, 1, 10))):
            detail = {"algorithm": "sha256", "digest": SHA, "origin": "ledger"}
            at = f"2026-04-{number + 1:02}T00:00:00Z"
            look = Event(key=key, at=at, what="verified", version_id=version or "null", etag=entry.etag, size=5)
            await ledger.note("bucket", [replace(look, detail=detail)])
        if chance.random() < 0.4:
            await ledger.arrived("bucket", Notice(key=key, sequencer="0A", deleted=True, at="2026-02", version_id="m"))
            await ledger.note("bucket", [Event(key=key, at="2026-03", what="retired")])
        if chance.random() < 0.4:
            expected = Expectation(key=key, algorithm="sha256", digest=OTHER, origin="m" * 300, imported_at="2026")
            await ledger.expect("bucket", [expected])


@pytest.mark.slow
async def test_all_that_the_ledger_says_stays_the_same_and_then_comes_in_order(old: Old) -> None:
    keys = [*ODD_KEYS, *LONG]
    async with old.opened() as (ledger, _):
        await fill(ledger, keys)
        lease = await ledger.claim(WORK, "me", 1e6)
        assert isinstance(lease, Lease)
        await ledger.record(replace(ENTRY, bucket="other"))
        before = await state(ledger)
        rows = old.rows()
        passes = await old.shard()
        assert isinstance(await ledger.renew(lease, 1e6, {"bytes": 1}), Lease)
    assert old.schema() == 3
    assert old.rows() == rows
    assert [one.written for one in passes] == [len(rows), 0, 0]
    assert {one.rows for one in passes} == {len(rows)}
    async with old.opened() as (ledger, client):
        assert await state(ledger) == before
        assert not any(one.state == DAMAGED for one in before[2])
        client.asked.clear()
        assert [one.key for one in await all_subjects(ledger)] == sorted(keys)
        assert client.asked.keys() == {"Query"}
        assert [one.written for one in await old.shard()] == [0]


async def test_row_of_an_early_release_whose_name_is_too_long_keeps_its_version_and_etag(old: Old) -> None:
    etag = "e" * 200
    values = {"pk": f"bucket/{KEY}", "sk": f"v1#{etag}", "hashed_at": "2026", "sha256": SHA, "size": 5}
    old.items.put_item(Item=values)
    old.items.delete_item(Key={"pk": "-", "sk": "-"})
    await old.shard()
    async with old.opened() as (ledger, _):
        (found,) = await all_subjects(ledger)
    assert [(one.version_id, one.etag) for one in found.versions] == [("v1", etag)]
    assert old.schema() == 3


class Killed(BaseException):
    """The process has ended."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_killed_at_any_call_leaves_a_table_in_use_and_the_next_one_goes_on(old: Old, seed: int) -> None:
    chance = random.Random(seed)
    keys = [f"key-{number:03}" for number in range(30)]
    async with old.opened() as (ledger, _):
        await ledger.record_many([replace(ENTRY, key=key) for key in keys])
        before = await state(ledger)
    for calls in (chance.randint(1, 12), chance.randint(1, 30), chance.randint(20, 60)):
        left = calls

        async def count(operation: str, arguments: dict[str, Any]) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed

        async with old.opened() as (ledger, client):
            client.before = count
            with suppress(Killed):
                await ledger.give_shards(lambda part: None, lambda: False)
        async with old.opened() as (ledger, _):
            assert await state(ledger) == before
    await old.shard()
    async with old.opened() as (ledger, _):
        assert await state(ledger) == before
    assert len(old.copies()) == len(keys)


async def test_stopped_early_tells_so_and_changes_no_layout(old: Old) -> None:
    async with old.opened() as (ledger, _):
        await ledger.record(ENTRY)
    assert [one.rows for one in await old.shard(lambda: True)] == [0]
    assert old.schema() == 2


@pytest.mark.slow
async def test_throttled_calls_are_sent_again(old: Old) -> None:
    async with old.opened() as (ledger, _):
        await ledger.record_many([replace(ENTRY, key=f"{number}") for number in range(40)])
        before = await state(ledger)
    async with open_client("dynamodb", threads=16, region=None, endpoint_url=old.url, profile=None) as client:
        throttled = Throttled(client, 3)
        ledger = DynamoLedger(old.name, cast(ThreadedClient, throttled), sleep=at_once)
        await ledger.probe()
        assert await ledger.give_shards(lambda part: None, lambda: False)
        assert throttled.refused > throttled.calls / 5
        assert await state(ledger) == before


@pytest.mark.parametrize("denied", ["Scan", "BatchGetItem", "UpdateItem"])
async def test_denied_call_names_the_action_and_changes_no_layout(old: Old, denied: str) -> None:
    async with old.opened() as (ledger, client):
        await ledger.record(ENTRY)

        async def refuse(operation: str, arguments: dict[str, Any]) -> None:
            if operation == denied:
                raise CallFailed(operation, "AccessDeniedException", 400)

        client.before = refuse
        with pytest.raises(LedgerError, match=f"allow dynamodb:{denied}"):
            await ledger.give_shards(lambda part: None, lambda: False)
    assert old.schema() == 2


async def test_late_writers_rows_are_merged_and_drop_nothing(old: Old) -> None:
    """A process that has not noticed the shards writes to the old rows, while others write to the copies."""
    second = replace(ENTRY, version_id="v2")
    async with old.opened() as (late, _), old.opened() as (early, _):
        await late.record(ENTRY)
        await late.record(second)
        assert [one.written for one in await old.shard()] == [2, 0, 0]
        await late.record(replace(ENTRY, key="new"))
        await late.record(replace(ENTRY, digests={"md5": MD5}))
        await late.note("bucket", [VERIFIED])
        await late.note("bucket", [replace(VERIFIED, version_id="v2", at="2026-06-01T00:00:00Z")])
        await late.arrived("bucket", Notice(key="new", sequencer="0B", deleted=True, at="2026-07"))
        await early.probe()
        await early.note("bucket", [replace(VERIFIED, version_id="v2", at="2026-05-02T00:00:00Z")])
        await early.record(replace(ENTRY, digests={"sha1": "11" * 20}))
        passes = await old.shard()
        assert passes[0].written > 0
        assert passes[-1].written == 0
        one, other = await all_subjects(early)
        assert {found.version_id: found.digests.keys() for found in one.versions} == {
            "null": {"sha256", "md5", "sha1"},
            "v2": {"sha256"},
        }
        assert other.deleted_at == "2026-07"
        verified = {found.version_id: found.digests["sha256"].verified_at for found in one.versions}
        assert verified == {"null": "2026-05-01T00:00:00Z", "v2": "2026-06-01T00:00:00Z"}
        told = [(event.what, event.at) for event in await early.history("bucket", KEY) if event.what == "verified"]
        assert sorted(at for _, at in told) == [f"2026-0{day}:00:00Z" for day in ("5-01T00", "5-02T00", "6-01T00")]
        assert not [found async for part in early.checked() for found in part if found.state == DAMAGED]


async def test_table_that_is_written_meanwhile_is_copied_again_before_the_copies_count(old: Old) -> None:
    async with old.opened() as (writer, _), old.opened() as (ledger, client):
        await writer.record_many([replace(ENTRY, key=f"{number}") for number in range(10)])
        more = iter(range(10, 13))

        async def write(operation: str, arguments: dict[str, Any]) -> None:
            if operation == "BatchGetItem" and (number := next(more, None)) is not None:
                await writer.record(replace(ENTRY, key=f"{number}"))

        client.before = write
        assert await ledger.give_shards(lambda part: None, lambda: False)
        assert len(await all_subjects(ledger)) == 13


async def test_two_at_once_end_with_one_copy_of_each_row(old: Old) -> None:
    async with old.opened() as (first, _), old.opened() as (second, client):
        await first.record_many([replace(ENTRY, key=f"{number}") for number in range(20)])
        begun = False

        async def overtake(operation: str, arguments: dict[str, Any]) -> None:
            nonlocal begun
            if operation == "UpdateItem" and not begun:
                begun = True
                assert await first.give_shards(lambda part: None, lambda: False)
                await first.record(replace(ENTRY, key="0", digests={"md5": MD5}))

        client.before = overtake
        assert await second.give_shards(lambda part: None, lambda: False)
        assert len(old.copies()) == 20
        found = await second.subject("bucket", "0")
        assert found is not None
        assert found.versions[0].digests.keys() == {"sha256", "md5"}


Printed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["ledger", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def put(old: Old, key: str, **values: Any) -> None:
    item = {"pk": f"bucket/{key}", "sk": "null#etag", "hashed_at": "2026", "sha256": SHA, "size": 5}
    old.items.put_item(Item=item | values)


async def make(uri: str) -> None:
    async with open_ledger(uri):
        pass


def test_command_line(moto_url: str, printed: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Old(moto_url, asyncio.run(new_table(moto_url, shards=False)))
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    uri = f"dynamodb:{old.name}"
    assert printed("--shard", uri)[:2] == (0, "no row is without shards: nothing was copied\n")
    put(old, "a\n")
    assert printed("--shard", uri)[:2] == (0, "1 row in shards: each was compared with its copy; 1 written\n")
    put(old, "a\n", sha256=OTHER)
    code, out, _ = printed("--shard", "--ledger", uri)
    assert (code, out.splitlines()) == (
        3,
        [
            "1 row in shards: each was compared with its copy; 0 written",
            "  conflict: s3://bucket/a\\n: the row and its copy differ in sha256",
            "the copies count; the old rows are still in the table, under BUCKET/KEY",
        ],
    )
    code, out, _ = printed("--shard", uri, "--format", "json")
    assert code == 3
    assert json.loads(out) == {
        "ledger": uri,
        "complete": True,
        "rows": 1,
        "written": 0,
        "conflicted": 1,
        "conflicts": [{"bucket": "bucket", "key": "a\n", "what": "sha256"}],
    }
    asyncio.run(make(f"sqlite:{tmp_path / 'l.db'}"))
    code, _, err = printed("--shard", f"sqlite:{tmp_path / 'l.db'}")
    assert code == 2
    assert "--shard takes dynamodb:TABLE" in err
    code, _, err = printed("s3://b/k", "--shard", uri)
    assert code == 2
    assert "leave the key out" in err


def row(place: int = 1, **values: str) -> dict[str, Any]:
    found = {name: {"S": value} for name, value in values.items()}
    return {"pk": {"S": "b/k"}, "sk": {"S": "null#e"}, "size": {"N": "5"}, "place": {"N": str(place)}} | found


def test_merge_of_a_digest_row_takes_what_the_copy_lacks_and_keeps_what_it_has() -> None:
    copy, late = row(sha256="a", sha256_source="auditor", sha256_at="2"), row(2, md5="b", md5_at="3")
    assert merged(copy, late) == {**late, **copy}
    of_s3 = row(sha256="a", sha256_source="s3", sha256_at="1", sha256_bytes_read="0")
    assert merged(of_s3, copy) == copy
    assert merged(copy, of_s3)["sha256_at"] == {"S": "2"}
    with pytest.raises(CopiesDiffer) as raised:
        merged(copy, row(sha256="other"))
    assert raised.value.what == "sha256"
    with pytest.raises(CopiesDiffer) as raised:
        merged(copy, row(sha256="a") | {"size": {"N": "6"}})
    assert raised.value.what == "size"


def test_merge_of_another_row_takes_the_newer_one() -> None:
    notice = row(5) | {"sk": {"S": " notice"}}
    later = notice | {"place": {"N": "6"}, "deleted": {"BOOL": True}}
    assert merged(notice, later) == later
    assert merged(later, notice) == later
