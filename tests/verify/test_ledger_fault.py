"""Damage to the ledger is the ledger's fault, never the object's."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from auditor.ledger.seals import row_seal
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.verification import Bench, make_bench
from tests.verify.test_run import flip

WRONG = "aa" * 32


class DamagedBench:
    """A bench, and a way to change its ledger behind its back."""

    def __init__(self, bench: Bench, path: Path) -> None:
        self.bench = bench
        self.path = path

    def run(self, statement: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            for name in ("history_is_never_changed", "history_is_never_deleted"):
                connection.execute(f"DROP TRIGGER IF EXISTS {name}")
            assert connection.execute(statement).rowcount == 1

    def seal(self) -> None:
        """Give the one row the seal of what it says now."""
        columns = "key, etag, version_id, size, algorithm, digest, hashed_at, source, bytes_read, verified_at"
        with closing(sqlite3.connect(self.path)) as connection, connection:
            (row,) = connection.execute(f"SELECT bucket, {columns} FROM digests")
            connection.execute("UPDATE digests SET seal = ?", (row_seal(row[0], row[1].decode(), *row[2:]),))


@pytest.fixture
async def damaged(stub: StubServer, tmp_path: Path) -> AsyncIterator[DamagedBench]:
    async with make_bench(stub, tmp_path) as bench:
        yield DamagedBench(bench, tmp_path / "digests.db")


@pytest.mark.parametrize(
    "change",
    ["digest = '" + WRONG + "'", "etag = 'x'"],
)
async def test_history_stands_for_a_damaged_row_and_the_run_says_so(
    damaged: DamagedBench, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    await damaged.bench.recorded(damaged.bench.put("k"))
    damaged.run(f"UPDATE digests SET {change}")
    found = await damaged.bench.verify()
    assert (found.outcomes, found.code) == ({"match": 1}, 0)
    assert found.detail("k")["ledger"].startswith("damaged: ")
    assert "the ledger's entry of k is damaged" in caplog.text
    assert "the key's history has the digest" in caplog.text
    assert "restore it from a copy" not in caplog.text


async def test_damaged_object_is_a_mismatch_although_the_row_is_damaged_too(damaged: DamagedBench) -> None:
    item = damaged.bench.put("k")
    await damaged.bench.recorded(item)
    damaged.run(f"UPDATE digests SET digest = '{WRONG}'")
    flip(item, 0)
    found = await damaged.bench.verify()
    assert (found.outcomes, found.code) == ({"mismatch": 1}, 3)
    assert found.detail("k")["recorded"] != WRONG


@pytest.mark.parametrize("gone", [False, True])
async def test_nothing_is_said_of_an_object_without_a_sound_digest(
    damaged: DamagedBench, gone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await damaged.bench.recorded(damaged.bench.put("k"))
    if gone:
        damaged.bench.stub.world.buckets[BUCKET].objects.remove("k")
    damaged.run("UPDATE digests SET digest = 'bad'")
    damaged.run("UPDATE history SET detail = '{}'")
    found = await damaged.bench.verify()
    assert (found.outcomes, found.code) == ({"ledger_fault": 1}, 4)
    assert found.lines == ["? k"]
    assert gone or "restore it from a copy" in caplog.text


@pytest.mark.parametrize("size", [4, 99])
async def test_sealed_row_that_its_history_contradicts_is_no_mismatch(damaged: DamagedBench, size: int) -> None:
    await damaged.bench.recorded(damaged.bench.put("k", b"data"))
    damaged.run(f"UPDATE digests SET digest = '{WRONG}', size = {size}")
    damaged.seal()
    found = await damaged.bench.verify()
    assert (found.outcomes, found.code) == (({"match": 1}, 0) if size == 4 else ({"ledger_fault": 1}, 4))
    assert await damaged.bench.noted("k") == []


async def test_damaged_line_excuses_no_damaged_object(damaged: DamagedBench) -> None:
    item = damaged.bench.put("k")
    await damaged.bench.recorded(item)
    flip(item, 0)
    digest = hashlib.sha256(item.read()).hexdigest()
    damaged.run(f"UPDATE history SET detail = json_set(detail, '$.digest', '{digest}')")
    found = await damaged.bench.verify()
    assert (found.outcomes, found.code) == ({"mismatch": 1}, 3)


async def test_key_that_is_damaged_is_neither_missing_nor_new_evidence(damaged: DamagedBench) -> None:
    damaged.bench.put("k")
    await damaged.bench.recorded(damaged.bench.put("sound"), damaged.bench.put("k1"))
    damaged.run("UPDATE digests SET key = CAST('k2' AS BLOB) WHERE key = CAST('k1' AS BLOB)")
    damaged.run("UPDATE versions SET key = CAST('k2' AS BLOB) WHERE key = CAST('k1' AS BLOB)")
    found = await damaged.bench.verify()
    assert found.outcomes["ledger_fault"] == 1
    assert "missing" not in found.outcomes
