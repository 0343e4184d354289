"""A SQLite ledger in a directory that cannot be written: it is verified, exported, shown and checked all the same."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.cli.main import main
from auditor.errors import LedgerError
from auditor.ledger import open_ledger
from tests.conformance.ledgers.base import ENTRY
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.verification import Bench, make_bench

FILES = [("",), ("", "-wal"), ("", "-wal", "-shm")]
"""The suffixes of the files that were copied: of a closed ledger, and of one whose writer was killed."""
DAC_OVERRIDE = 1 << 1
"""The capability by which root writes whatever the modes say (linux/capability.h)."""


def set_override(*, allowed: bool) -> None:
    """Take the capability from this thread and those that it starts, or give it back. Nobody but root has it."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    version_3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice
    assert libc.capget(version_3, sets) == 0
    sets[0] = sets[0] | DAC_OVERRIDE if allowed else sets[0] & ~DAC_OVERRIDE
    assert libc.capset(version_3, sets) == 0


@contextmanager
def sealed_off(folder: Path) -> Iterator[None]:
    """Make the folder unwritable for this thread and those that it starts, also when root runs the tests."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    set_override(allowed=False)
    try:
        with pytest.raises(PermissionError):
            (folder / "new").touch()
        yield
    finally:
        set_override(allowed=True)
        folder.chmod(0o755)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder in ("work", "kept"):
        (tmp_path / folder).mkdir()
    return tmp_path


def keep(place: Path, suffixes: tuple[str, ...]) -> Path:
    """Copy the open ledger, whose writes are in its -wal, or all of it that a checkpoint moves into the file."""
    source = place / "work" / "digests.db"
    if len(suffixes) == 1:
        with closing(sqlite3.connect(source)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in suffixes:
        shutil.copy(f"{source}{suffix}", place / "kept")
    return place / "kept" / "digests.db"


async def filled(place: Path) -> Path:
    async with open_ledger(f"sqlite:{place / 'work' / 'digests.db'}") as ledger:
        await ledger.record(replace(ENTRY, key="one"))
        return keep(place, ("",))


@pytest.mark.parametrize("suffixes", FILES, ids=" ".join)
async def test_verified(stub: StubServer, place: Path, suffixes: tuple[str, ...], caplog: Any) -> None:
    async with make_bench(stub, place / "work") as bench:
        await bench.recorded(bench.put("match"), bench.put("flipped"), bench.put("gone"))
        path = keep(place, suffixes)
    stub.world.buckets[BUCKET].objects.versions("flipped")[0].body = b"flop"
    stub.world.buckets[BUCKET].objects.remove("gone")
    with sealed_off(path.parent):
        before = {file.name for file in path.parent.iterdir()}
        async with open_ledger(f"sqlite:{path}") as ledger:
            found = await Bench(stub, ledger, place / "out").verify()
        assert {file.name for file in path.parent.iterdir()} == before
    assert (found.code, found.outcomes) == (3, {"match": 1, "mismatch": 1, "missing": 1})
    assert found.summary["unnoted"] == 3
    (said,) = (record.getMessage() for record in caplog.records if "cannot be written" in record.getMessage())
    assert said.endswith("; the verification continues, and notes nothing of it there")


def test_exported_shown_and_checked_and_an_import_fails(place: Path, capfdbinary: Any) -> None:
    path = asyncio.run(filled(place))
    ledger, key = f"sqlite:{path}", f"s3://{ENTRY.bucket}/one"
    told, manifest = [], place / "sums.txt"
    manifest.write_text(f"{'0' * 64}  one\n")
    commands = (
        ("digests", "export", f"s3://{ENTRY.bucket}", "--manifest", "csv", "--ledger", ledger),
        ("ledger", key, "--ledger", ledger),
        ("digests", "history", key, "--ledger", ledger),
        ("ledger", "--check", ledger),
    )
    with sealed_off(path.parent):
        for command in commands:
            assert main(command) == 0
            told.append(capfdbinary.readouterr().out)
        assert main(("digests", "import", str(manifest), f"s3://{ENTRY.bucket}", "--ledger", ledger)) == 1
    assert all(ENTRY.digests["sha256"].encode() in out for out in told[:3])
    assert told[3].startswith(b"1 row: 1 sound")
    said = f"auditor: the ledger {ledger} cannot be written: check its permissions and those of its directory\n"
    assert capfdbinary.readouterr().err.decode() == said


async def test_unfinished_write_of_another_journal(place: Path) -> None:
    """To read past such a journal is to read half of a transaction."""
    path = await filled(place)
    shutil.copy(path, f"{path}-journal")
    with sealed_off(path.parent), pytest.raises(LedgerError, match="unfinished write"):
        async with open_ledger(f"sqlite:{path}"):
            pass


async def test_written_by_its_owner_meanwhile(place: Path) -> None:
    """Nothing of a file that changes under a reader without locks is believed."""
    path = await filled(place)
    with sealed_off(path.parent):
        async with open_ledger(f"sqlite:{path}") as ledger:
            assert await ledger.history(ENTRY.bucket, "one")
            set_override(allowed=True)
            path.parent.chmod(0o755)
            path.chmod(0o644)
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("DELETE FROM versions")
            with pytest.raises(LedgerError, match="was written while it was read: run again"):
                await ledger.history(ENTRY.bucket, "one")
