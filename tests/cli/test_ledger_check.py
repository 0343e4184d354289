"""`auditor ledger --check`: a whole ledger is checked, and damage is named."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from auditor.ledger import open_ledger
from tests.cli.conftest import Run
from tests.conformance.ledgers.base import ENTRY


@pytest.fixture
def path(tmp_path: Path) -> Path:
    async def fill() -> None:
        async with open_ledger(f"sqlite:{tmp_path / 'l.db'}") as ledger:
            await ledger.record_many([replace(ENTRY, key=f"k{number}\x1b") for number in range(300)])
            await ledger.record(replace(ENTRY, bucket="other"))

    asyncio.run(fill())
    return tmp_path / "l.db"


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


def test_damage_is_named_counted_and_bounded(run: Run, path: Path) -> None:
    change(path, "UPDATE digests SET size = 6 WHERE bucket = 'bucket'")
    code, out, _ = run("ledger", "--check", f"sqlite:{path}")
    assert code == 3
    assert "301 rows: 1 sound, 300 damaged\n" in out
    assert "  damaged row: s3://bucket/k0\\x1b: sha256 of version null, ETag etag: the seal is wrong\n" in out
    assert "  and 200 more\n`auditor ledger --repair` rewrites each damaged row that a sound history line has\n" in out
    assert "restore the ledger from a copy" in out
    code, out, _ = run("ledger", "--check", f"sqlite:{path}", "--format", "json")
    found = json.loads(out)
    assert (code, found["rows"], len(found["damage"])) == (3, {"sound": 1, "damaged": 300}, 100)
