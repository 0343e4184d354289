"""The embedded ledger's file: the first schema is upgraded, and the history only grows."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.ledger import open_ledger
from auditor.ledger.leases import Held, Lease, Work
from auditor.ledger.sqlite.connection import connect
from auditor.ledger.sqlite.digests import look_up, record
from auditor.model.object import ObjectRef
from tests.conformance.ledgers.base import ENTRY

# As version 1 of this program made it.
FIRST_SCHEMA = """
CREATE TABLE digests (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    etag TEXT NOT NULL,
    version_id TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    hashed_at TEXT NOT NULL,
    PRIMARY KEY (bucket, key, etag, version_id, algorithm)
) WITHOUT ROWID
"""
ROWS = [
    ("b", b"new\nline\0\xf0\x9f\x92\xa9", "e", "null", "sha256", 5, "aa", "2026-01-02T00:00:00Z"),
    ("b", b"two", "e", "v1", "sha256", 7, "bb", "2026-01-03T00:00:00Z"),
    ("b", b"two", "e", "v1", "md5", 7, "cc", "2026-01-04T00:00:00Z"),
    ("b", b"two", "e", "v0", "sha256", 8, "dd", "2026-01-01T00:00:00Z"),
    ("other", b"two", "e", "null", "sha256", 9, "ee", "2026-01-05T00:00:00Z"),
]
OPENER = """
import asyncio, sys
from auditor.ledger import open_ledger

async def main(path):
    sys.stdin.readline()
    async with open_ledger(f"sqlite:{path}") as ledger:
        print(len([one async for one in ledger.subjects("b")]))

asyncio.run(main(sys.argv[1]))
"""


def first_ledger(path: Path, copies: int = 1) -> None:
    """copies: how often its first row is copied under other keys."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(FIRST_SCHEMA)
        connection.executemany("INSERT INTO digests VALUES (?,?,?,?,?,?,?,?)", ROWS)
        more = (("b", b"copy-%d" % number, *ROWS[0][2:]) for number in range(1, copies))
        connection.executemany("INSERT INTO digests VALUES (?,?,?,?,?,?,?,?)", more)
        connection.execute("PRAGMA user_version = 1")


async def test_ledger_of_the_first_schema_keeps_its_digests_and_gets_a_history(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first_ledger(path)
    async with open_ledger(f"sqlite:{path}") as ledger:
        ref = ObjectRef("two", "e", 7, "2026-01-01T00:00:00Z", version_id="v1")
        assert await ledger.known("b", [ref], ["sha256", "md5"]) == [{"sha256": "bb", "md5": "cc"}]
        odd, two = [one async for one in ledger.subjects("b")]
        assert (odd.key, two.key) == ("new\nline\0\U0001f4a9", "two")
        assert [(one.version_id, one.first_seen) for one in two.versions] == [
            ("v0", "2026-01-01T00:00:00Z"),
            ("v1", "2026-01-03T00:00:00Z"),
        ]
        known = two.versions[1].digests["md5"]
        assert (known.source, known.recorded_at, known.verified_at, known.bytes_read) == (
            "auditor",
            "2026-01-04T00:00:00Z",
            None,
            7,
        )
        told = [
            (one.at, one.what, one.version_id, one.size, one.detail["digest"])
            for one in await ledger.history("b", "two")
        ]
        assert told == [
            ("2026-01-01T00:00:00Z", "recorded", "v0", 8, "dd"),
            ("2026-01-03T00:00:00Z", "recorded", "v1", 7, "bb"),
            ("2026-01-04T00:00:00Z", "recorded", "v1", 7, "cc"),
        ]


async def test_processes_that_upgrade_it_at_once_do_it_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first_ledger(path, copies=5000)
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", OPENER, str(path), stdin=pipe, stdout=pipe)
        for _ in range(3)
    ]
    answers = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    assert [int(out) for out, _ in answers] == [5001] * 3
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT line) FROM history").fetchone() == (5004, 5004)
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


async def test_failed_upgrade_leaves_the_first_schema_whole(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first_ledger(path)
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())
        connection.execute("CREATE TABLE leases (mine TEXT)")
    with pytest.raises(Exception, match="table leases already exists"):
        async with open_ledger(f"sqlite:{path}"):
            pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE leases")
        assert list(connection.iterdump()) == before
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


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
            "INSERT OR REPLACE INTO history SELECT 99, bucket, key, line, 'x', 'x', '', '', 0, '', NULL FROM history",
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
