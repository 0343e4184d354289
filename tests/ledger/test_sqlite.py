"""The embedded ledger: unusable files, several processes, and a kill in the middle of a write."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from auditor.errors import LedgerError, UsageError
from auditor.ledger import file_of, open_ledger
from auditor.ledger.leases import Lease, Work
from auditor.model.object import ObjectRef
from tests.conformance.ledgers.base import ENTRY

WRITER = """
import asyncio, sys
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry

async def main(path, name):
    async with open_ledger(f"sqlite:{path}") as ledger:
        number = 0
        while number < 50 or name == "endless":
            entry = Entry(bucket="b", key=f"{name}-{number}", version_id=None, etag="e", size=1,
                          digests={"sha256": "00"}, hashed_at="2026-01-01T00:00:00Z")
            await ledger.record(entry)
            print(number, flush=True)
            number += 1

asyncio.run(main(*sys.argv[1:]))
"""


async def open_once(path: Path | str) -> None:
    async with open_ledger(f"sqlite:{path}"):
        pass


def refs(name: str, count: int) -> list[ObjectRef]:
    return [ObjectRef(f"{name}-{number}", "e", 1, "2026-01-01T00:00:00Z") for number in range(count)]


def test_uri_that_is_no_ledger_names_the_flag_and_the_forms() -> None:
    for uri in ("", "sqlite", "sqlite:", "sqlite: ", "dynamodb:", "redis:x", "ledger.db", "sqlite:a\0b"):
        with pytest.raises(UsageError, match=r"--ledger .* sqlite:PATH or dynamodb:TABLE"):
            open_ledger(uri)
    with pytest.raises(UsageError, match="that home directory does not exist"):
        file_of("~nobody-has-this-name/ledger.db")


async def test_path_or_file_that_is_no_ledger_is_one_sentence(tmp_path: Path) -> None:
    text, other, newer, older = (tmp_path / name for name in ("notes.txt", "other.db", "newer.db", "older.db"))
    text.write_text("not a database at all" * 100)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
    with closing(sqlite3.connect(older)) as connection:
        connection.executescript((Path(__file__).parent / "older" / "schema_3.sql").read_text())
    before = older.read_bytes()
    await open_once(newer)
    with closing(sqlite3.connect(newer)) as connection:
        told = [connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")]
        assert told == [(0x53334155,), (1,)], "a new file says that it is a ledger, and its format"
        connection.execute("PRAGMA user_version = 2")
    for path, sentence in (
        (tmp_path / "no" / "ledger.db", r"directory of --ledger .*ledger\.db does not exist: create '.*/no'"),
        (tmp_path, "cannot be opened: check the path"),
        (text, "is not a SQLite database"),
        (other, r"of another program: name a new file, for example sqlite:.*/other-new.db"),
        (newer, r"newer auditor \(format 2\)"),
        (older, r"of a development version .* or of another program: name a new file, .*/older-new\.db"),
    ):
        with pytest.raises(LedgerError, match=sentence):
            await open_once(path)
    assert older.read_bytes() == before


async def test_refused_write(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    await open_once(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER t BEFORE INSERT ON digests BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(LedgerError, match="fails: no"):
        async with open_ledger(f"sqlite:{path}") as ledger:
            await ledger.record(ENTRY)


async def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(path), f"w{number}", stdout=subprocess.DEVNULL
        )
        for number in range(3)
    ]
    assert [await writer.wait() for writer in writers] == [0, 0, 0]
    async with open_ledger(f"sqlite:{path}") as ledger:
        for number in range(3):
            assert all(await ledger.known("b", refs(f"w{number}", 50), ["sha256"]))


async def test_killed_in_mid_write_keeps_every_digest_that_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(path), "endless", stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    last = -1
    while last < 20:
        last = int(await writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    rest = (await writer.stdout.read()).split()
    await writer.wait()
    recorded = int(rest[-1]) if rest else last
    async with open_ledger(f"sqlite:{path}") as ledger:
        assert all(await ledger.known("b", refs("endless", recorded + 1), ["sha256"]))
        found = [one.key async for one in ledger.subjects("b")]
        assert len(found) > recorded
        told = [[event.what for event in await ledger.history("b", key)] for key in found]
        assert told == [["recorded"]] * len(found), "a digest and its line are there both, or neither"


async def test_history_is_not_changed_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    again = "INSERT OR REPLACE INTO history SELECT {}, bucket, key, line, 'x', 'x', '', '', 0, '', {} FROM history"
    async with open_ledger(f"sqlite:{path}") as ledger:
        await ledger.record(ENTRY)
        before = await ledger.history("bucket", ENTRY.key)
        for statement in ("UPDATE history SET at = 'never'", "DELETE FROM history"):
            with (
                closing(sqlite3.connect(path)) as connection,
                pytest.raises(sqlite3.IntegrityError, match="the history is only added to"),
            ):
                connection.execute(statement)
        for place, seal in (("place", "''"), ("99", "'x'")):
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute(again.format(place, seal))
        assert await ledger.history("bucket", ENTRY.key) == before


async def test_tampered_lease_or_checkpoint_is_none(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    work = Work(bucket="b", key="k", version_id=None, etag="e", algorithms=("sha256",))
    async with open_ledger(f"sqlite:{path}") as ledger:
        lease = await ledger.claim(work, "one", 60.0)
        for text in ("", "{", "[1]", "null", "[" * 100_000):
            assert isinstance(lease, Lease)
            await ledger.release(await ledger.renew(lease, 60.0, {"bytes": 64}), done=False)
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE leases SET checkpoint = ?", (text,))
            lease = await ledger.claim(work, "two", 60.0)
            assert isinstance(lease, Lease)
            assert lease.checkpoint == {}, text[:9]
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE leases SET until = 'soon', fence = 'x', hops = x'ff'")
        lease = await ledger.claim(work, "other", 600.0)
        assert isinstance(lease, Lease)
        assert (lease.owner, lease.fence, lease.hops) == ("other", 1, 1)
