"""Ledgers that a development version wrote are refused with one sentence, and stay as they are.

The files in `older` are what commit 38b36516 wrote for one recorded and verified digest: the dump of its SQLite file,
with its number, and the items of its DynamoDB table.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from auditor.cli.main import main
from tests.ledger.conftest import dynamodb, new_table
from tests.support.servers.clients import client

OLDER: Final = Path(__file__).parent / "older"
BUCKET: Final = "audited-by-older-ledgers"
COMMANDS: Final = (
    ("ledger", "--check"),
    ("ledger", "--repair"),
    ("ledger", "s3://bucket/a/key"),
    ("digests", "export", "s3://bucket", "--manifest", "csv"),
    ("hash", f"s3://{BUCKET}"),
    ("verify", f"s3://{BUCKET}"),
    ("audit", f"s3://{BUCKET}", "--hash"),
)
Say = Callable[..., tuple[int, str]]


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str], moto_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Run a command in an empty directory, and return its exit code and its last line on stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDITOR_ENDPOINT_URL", moto_url)
    with closing(client("s3", moto_url)) as s3:
        s3.create_bucket(Bucket=BUCKET)

    def call(*arguments: str) -> tuple[int, str]:
        code = main(arguments)
        return code, capfd.readouterr().err.splitlines()[-1]

    return call


def test_file_of_a_development_version(say: Say, tmp_path: Path) -> None:
    path = tmp_path / "digests.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((OLDER / "schema_3.sql").read_text())
    before = path.read_bytes()
    refused = (
        1,
        f"auditor: --ledger sqlite:{path} is the file of a development version of the auditor or of another program:"
        f" name a new file, for example sqlite:{tmp_path}/digests-new.db",
    )
    for command in COMMANDS:
        assert say(*command, "--ledger", f"sqlite:{path}") == refused, command
    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {path.name}


def test_table_of_a_development_version(say: Say, moto_url: str) -> None:
    said, *rows = json.loads((OLDER / "schema_3.json").read_text())
    for items, commands in (([said, *rows], COMMANDS), (rows, [("hash", f"s3://{BUCKET}")])):
        name = asyncio.run(new_table(moto_url))
        for item in items:
            dynamodb(moto_url).put_item(TableName=name, Item=item)
        before = dynamodb(moto_url).scan(TableName=name)["Items"]
        refused = (
            1,
            f"auditor: the ledger table '{name}' was written by a development version of the auditor or by another"
            " program: create a new table and name it with --ledger dynamodb:TABLE or the stack's parameter ledger",
        )
        for command in commands:
            assert say(*command, "--ledger", f"dynamodb:{name}") == refused, command
        assert dynamodb(moto_url).scan(TableName=name)["Items"] == before
