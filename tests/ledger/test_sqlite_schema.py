"""The embedded ledger's file: its numbers and tables, and a history that only grows."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from auditor.ledger import open_ledger
from auditor.ledger.leases import Held, Lease, Work
from auditor.ledger.sqlite.connection import connect
from auditor.ledger.sqlite.digests import look_up, record
from tests.conformance.ledgers.base import ENTRY

OPENER = """
import asyncio, sys
from auditor.ledger import open_ledger

async def main(path):
    sys.stdin.readline()
    async with open_ledger(f"sqlite:{path}") as ledger:
        print(len([one async for one in ledger.subjects("b")]))

asyncio.run(main(sys.argv[1]))
"""


async def test_new_file_says_that_it_is_a_ledger_and_its_format(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    async with open_ledger(f"sqlite:{path}"):
        pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (0x53334155,)
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


async def test_processes_that_begin_a_file_at_once_all_use_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", OPENER, str(path), stdin=pipe, stdout=pipe)
        for _ in range(3)
    ]
    answers = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    assert [int(out) for out, _ in answers] == [0] * 3


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("UPDATE history SET at = 'never'", True),
        ("DELETE FROM history", True),
        (
            "INSERT OR REPLACE INTO history SELECT place, bucket, key, line, 'x', 'x', '', '', 0, '', '' FROM history",
            False,
        ),
        (
            "INSERT OR REPLACE INTO history SELECT 99, bucket, key, line, 'x', 'x', '', '', 0, '', 'x' FROM history",
            False,
        ),
    ],
)
async def test_history_is_not_changed_by_hand(tmp_path: Path, statement: str, refused: bool) -> None:
    path = tmp_path / "ledger.db"
    async with open_ledger(f"sqlite:{path}") as ledger:
        await ledger.record(ENTRY)
        before = await ledger.history("bucket", ENTRY.key)
        with closing(sqlite3.connect(path)) as connection, connection:
            if refused:
                with pytest.raises(sqlite3.IntegrityError, match="the history is only added to"):
                    connection.execute(statement)
            else:
                connection.execute(statement)
        assert await ledger.history("bucket", ENTRY.key) == before


async def test_64_claimants_each_with_a_connection_of_its_own_and_one_winner(tmp_path: Path) -> None:
    work = Work(bucket="b", key="k", version_id=None, etag="e", algorithms=("sha256",))
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(open_ledger(f"sqlite:{tmp_path / 'ledger.db'}")) for _ in range(64)]
        answers = await asyncio.gather(
            *(ledger.claim(work, f"owner-{number}", 60.0) for number, ledger in enumerate(opened))
        )
    (winner,) = (answer for answer in answers if isinstance(answer, Lease))
    assert [answer.owner for answer in answers if isinstance(answer, Held)] == [winner.owner] * 63


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 100_000])
async def test_tampered_checkpoint_is_refused_by_its_reader(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.db"
    work = Work(bucket="b", key="k", version_id=None, etag="e", algorithms=("sha256",))
    async with open_ledger(f"sqlite:{path}") as ledger:
        lease = await ledger.claim(work, "one", 60.0)
        assert isinstance(lease, Lease)
        await ledger.release(await ledger.renew(lease, 60.0, {"bytes": 64}), done=False)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE leases SET checkpoint = ?", (text,))
        again = await ledger.claim(work, "two", 60.0)
        assert isinstance(again, Lease)
        assert again.checkpoint == {}


def test_1000_refs_are_few_queries_and_100_records_one_transaction(tmp_path: Path) -> None:
    statements: list[str] = []
    with closing(connect(str(tmp_path / "ledger.db"))) as connection:
        connection.set_trace_callback(statements.append)
        look_up(connection, "b", [(b"k%d" % number, "e") for number in range(1000)])
        assert len(statements) == 3
        statements.clear()
        assert record(connection, [replace(ENTRY, key=f"k{number}") for number in range(100)]) == [True] * 100
        assert [one for one in statements if one.startswith(("BEGIN", "COMMIT"))] == ["BEGIN IMMEDIATE", "COMMIT"]
