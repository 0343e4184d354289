"""The embedded ledger: unusable files, several processes, and a kill in the middle of a write."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from auditor.errors import LedgerError, UsageError
from auditor.ledger import file_of, open_ledger
from auditor.ledger.base import Entry
from auditor.ledger.sqlite import connection as connecting
from auditor.ledger.sqlite.digests import look_up_query
from auditor.model.object import ObjectRef

WRITER = """
import asyncio, sys
from auditor.ledger import file_of, open_ledger
from auditor.ledger.base import Entry
from auditor.ledger.sqlite.digests import look_up_query

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


@pytest.mark.parametrize(
    "uri", ["", "sqlite", "sqlite:", "sqlite: ", "dynamodb:", "redis:x", "ledger.db", "sqlite:a\0b"]
)
def test_uri_that_is_no_ledger_names_the_flag_and_the_forms(uri: str) -> None:
    with pytest.raises(UsageError, match=r"--ledger .* sqlite:PATH or dynamodb:TABLE"):
        open_ledger(uri)


def test_home_of_nobody_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="that home directory does not exist"):
        file_of("~nobody-has-this-name/ledger.db")


class Busy:
    """A connection whose switch to WAL meets another process, so many times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def execute(self, _: str) -> Busy:
        self.left -= 1
        if self.left >= 0:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return self

    def fetchone(self) -> None:
        """There is nothing to fetch."""


def test_switch_to_wal_waits_for_another_process_as_long_as_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    time = Mock(now=0.0)
    time.monotonic.side_effect = lambda: time.now
    time.sleep.side_effect = lambda seconds: setattr(time, "now", time.now + 10)
    monkeypatch.setattr(connecting, "time", time)
    connecting._use_wal(Busy(4))  # type: ignore[arg-type]
    assert time.sleep.call_count == 4
    with pytest.raises(sqlite3.OperationalError):
        connecting._use_wal(Busy(5))  # type: ignore[arg-type]


def test_connection_that_cannot_be_set_up_is_closed() -> None:
    def refuse(_: sqlite3.Connection) -> None:
        raise OSError("refused")

    connection = sqlite3.connect(":memory:")
    with pytest.raises(OSError, match="refused"):
        connecting._opened(":memory:", connection, refuse)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


async def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"directory of --ledger .*ledger\.db does not exist: create '.*/no'"):
        await open_once(tmp_path / "no" / "ledger.db")


async def test_path_of_a_directory(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened: check the path"):
        await open_once(tmp_path)


async def test_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all" * 100)
    with pytest.raises(LedgerError, match="is not a SQLite database"):
        await open_once(path)


async def test_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    await open_once(path)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (path.stat().st_size - 100))
    with pytest.raises(LedgerError, match="is damaged"):
        async with open_ledger(f"sqlite:{path}") as ledger:
            await ledger.known("b", refs("x", 1), ["sha256"])


async def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
    with pytest.raises(LedgerError, match=r"of another program: name a new file, for example sqlite:.*/other-new.db"):
        await open_once(path)


async def test_ledger_of_a_newer_auditor(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    await open_once(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(LedgerError, match=r"newer auditor \(format 2\)"):
        await open_once(path)


async def test_refused_write(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    await open_once(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER t BEFORE INSERT ON digests BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(LedgerError, match="fails: no"):
        async with open_ledger(f"sqlite:{path}") as ledger:
            await ledger.record(
                Entry(bucket="b", key="k", version_id=None, etag="e", size=1, digests={"sha256": "00"}, hashed_at="")
            )


async def test_many_refs_take_few_searches_of_the_primary_key(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    await open_once(path)
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {look_up_query(2)}", [b"a", "b", b"c", "d", "e"]).fetchall()
    assert any("SEARCH d USING PRIMARY KEY (bucket=? AND key=? AND etag=?)" in row[3] for row in plan)


async def test_tasks_at_once_share_the_one_thread(tmp_path: Path) -> None:
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        answers = await asyncio.gather(*(ledger.known("b", refs("x", 3), ["sha256"]) for _ in range(20)))
    assert answers == [[{}, {}, {}]] * 20


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
