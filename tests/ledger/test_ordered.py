"""The look-up along a listing: it answers as a question about each object does, and chooses what costs less."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from auditor.aws.client import ThreadedClient, open_client
from auditor.errors import CallFailed, LedgerError
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry, Event, Ledger, Notice, OrderedReader
from auditor.ledger.dynamodb.ledger import DynamoLedger
from auditor.ledger.dynamodb.ordered import FIRST, ShardReader
from auditor.ledger.dynamodb.table import SHARDS, Table
from auditor.model.object import AnyVersion, ObjectRef
from tests.conformance.ledgers.base import ENTRY, ODD_KEYS, OTHER, SHA
from tests.ledger.conftest import new_table
from tests.support.fakes.dynamodb import GeneratedTable, digest_of, ref_of

ALGORITHMS = ("sha256", "md5", "sha1")
VERSIONS = (None, "null", "v1", "v2", "v#3")
ETAGS = ("etag", "other", "a#b")
DIGESTS = (SHA, OTHER)


def generated(seed: int, count: int) -> tuple[list[Entry], list[ObjectRef]]:
    """Entries, some of which contradict each other, and a listing of their keys and others, of their versions and
    others.
    """
    chance = random.Random(seed)
    keys = [
        *ODD_KEYS,
        *(f"{one}{number}" for one in ("a", "a/", "é", "\x01", "h" * 900) for number in range(count // 5)),
    ]
    chance.shuffle(keys)
    recorded, listed = keys[: len(keys) * 2 // 3], keys[len(keys) // 3 :]

    def entry() -> Entry:
        digests = {name: chance.choice(DIGESTS) for name in chance.sample(ALGORITHMS, chance.randint(1, 2))}
        return replace(
            ENTRY,
            key=chance.choice(recorded),
            version_id=chance.choice(VERSIONS),
            etag=chance.choice(ETAGS),
            size=chance.choice((5, 5, 6)),
            digests=digests,
        )

    versions = chance.random() < 0.5
    refs = [
        ObjectRef(
            key,
            chance.choice(ETAGS),
            chance.choice((5, 5, 6)),
            "2026-01-01T00:00:00Z",
            version_id=chance.choice(VERSIONS[1:]) if versions else None,
        )
        for key in sorted(listed)
        for _ in range(chance.randint(1, 3) if versions else 1)
    ]
    return [entry() for _ in range(count)], refs


async def filled(ledger: Ledger, entries: Sequence[Entry], bucket: str = "bucket") -> None:
    """Record the entries, and write what else a ledger has of a key: notifications, retirements, verifications."""
    await ledger.record_many(entries)
    for entry in entries[::7]:
        await ledger.arrived(bucket, Notice(key=entry.key, sequencer="0A", deleted=True, at="2026-02"))
        await ledger.note(bucket, [Event(key=entry.key, at="2026-03", what="retired")])
    for entry in entries[::5]:
        detail = {"algorithm": "sha256", "digest": SHA}
        verified = Event(key=entry.key, at="2026-04", what="verified", etag=entry.etag, size=entry.size, detail=detail)
        await ledger.note(bucket, [verified])


async def answers(reader: OrderedReader, refs: Sequence[AnyVersion], batch: int = 7) -> list[Mapping[str, str]]:
    found: list[Mapping[str, str]] = []
    for start in range(0, len(refs), batch):
        found += await reader.known(refs[start : start + batch], ALGORITHMS)
    await reader.close()
    return found


def generated_reader(table: GeneratedTable, *, first: int = FIRST) -> ShardReader:
    async def sleep(_: float) -> None:
        pass

    opened = Table("digests", cast(ThreadedClient, table), sleep)
    ledger = DynamoLedger("digests", cast(ThreadedClient, table), sleep=sleep)
    return ShardReader(opened, "bucket", partial(ledger.known, "bucket"), first=first)


async def check(reader: ShardReader, keys: Sequence[str], known: Sequence[str] | None = None) -> None:
    """Look up these keys in batches; each must have the digest of a generated table if it is among the known ones."""
    wanted = set(keys if known is None else known)
    for start in range(0, len(keys), 200):
        batch = keys[start : start + 200]
        found = await reader.known([*map(ref_of, batch)], ["sha256"])
        assert found == [{"sha256": digest_of(key)} if key in wanted else {} for key in batch]
    await reader.close()


async def test_sqlite_reads_a_key_with_more_rows_than_a_page_as_a_whole(tmp_path: Path) -> None:
    versions = [f"v{number:04}" for number in range(700)]
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        await ledger.record_many([replace(ENTRY, version_id=version) for version in versions])
        await ledger.record_many([replace(ENTRY, key=key) for key in ("a/ke", "a/key\0", "a/key2")])
        refs = [ObjectRef(ENTRY.key, ENTRY.etag, ENTRY.size, "", version_id=version) for version in versions]
        refs += [ObjectRef(key, ENTRY.etag, ENTRY.size, "") for key in ("a/key\0", "a/key1", "a/key2")]
        found = await answers(ledger.in_order("bucket"), refs)
    assert found == [{"sha256": SHA}] * 701 + [{}] + [{"sha256": SHA}]


def test_sqlite_answers_along_the_listing_as_to_questions(tmp_path: Path) -> None:
    async def check_seed(seed: int) -> None:
        entries, refs = generated(seed, 120)
        async with open_ledger(f"sqlite:{tmp_path / f'{seed}.db'}") as ledger:
            await filled(ledger, entries)
            asked = await ledger.known("bucket", refs, ALGORITHMS)
            assert any(asked)
            assert not all(asked)
            assert await answers(ledger.in_order("bucket"), refs) == asked, seed

    for seed in range(6):
        asyncio.run(check_seed(seed))


@pytest.mark.slow
async def test_shards_answer_along_the_listing_as_to_questions(moto_url: str) -> None:
    name = await new_table(moto_url)
    async with open_client("dynamodb", threads=4, region=None, endpoint_url=moto_url, profile=None) as client:
        ledger, table = DynamoLedger(name, client), Table(name, client, asyncio.sleep)
        await ledger.probe()
        await table.probe()
        for seed in (1, 2):
            bucket, (entries, refs) = f"bucket{seed}", generated(seed, 30)
            await filled(ledger, [replace(entry, bucket=bucket) for entry in entries], bucket)
            asked = await ledger.known(bucket, refs, ALGORITHMS)
            assert any(asked)
            for first in (0, len(refs) // 2):
                reader = ShardReader(table, bucket, partial(ledger.known, bucket), first=first)
                assert await answers(reader, refs) == asked, seed


async def test_known_objects_take_few_requests_and_read_units() -> None:
    keys = [f"photos/{number:07}.jpg" for number in range(30_000)]
    asked = GeneratedTable("bucket", keys)
    await check(generated_reader(asked, first=len(keys)), keys[:1_000])
    assert (asked.asked, asked.units) == ({"BatchGetItem": 10}, 500)
    passed = GeneratedTable("bucket", keys)
    await check(generated_reader(passed), keys)
    assert passed.asked == {"BatchGetItem": FIRST // 100, "Query": 2 * SHARDS}
    assert passed.units < len(keys) / 15


async def test_pass_that_fails_or_is_cancelled_is_begun_again_where_it_was() -> None:
    keys = [f"{number:06}" for number in range(24_000)]
    table = GeneratedTable("bucket", keys[::2])
    reader, refs = generated_reader(table, first=0), [*map(ref_of, keys)]
    assert all((await reader.known(refs[:2_000], ["sha256"]))[::2])
    table.failing = [CallFailed("Query", "AccessDeniedException", 400)]
    with pytest.raises(LedgerError, match="allow dynamodb:Query"):
        await reader.known(refs[2_000:], ["sha256"])
    assert not table.failing
    task = asyncio.create_task(reader.known(refs[2_000:], ["sha256"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await check(reader, keys[2_000:], keys[::2])
    assert table.asked.keys() == {"Query"}, "the unknown objects between known ones are not asked about"
