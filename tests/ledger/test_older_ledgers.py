"""Ledgers that a development version wrote are refused with one sentence, and stay as they are.

The files in `older` are what commit 38b36516 wrote for one recorded and verified digest: the dump of its SQLite file,
with its number, and the items of its DynamoDB table.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from uuid import uuid4

import boto3
import pytest

from auditor.cli.main import main
from auditor.ledger.dynamodb.ledger import create_table
from tests.support.servers.clients import client

OLDER: Final = Path(__file__).parent / "older"
BUCKET: Final = "audited-by-older-ledgers"
COMMANDS: Final = pytest.mark.parametrize(
    "command",
    [
        ("ledger", "--check"),
        ("ledger", "--repair"),
        ("ledger", "s3://bucket/a/key"),
        ("digests", "export", "s3://bucket", "--manifest", "csv"),
        ("hash", f"s3://{BUCKET}"),
        ("verify", f"s3://{BUCKET}"),
        ("audit", f"s3://{BUCKET}", "--hash"),
    ],
    ids=" ".join,
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


@COMMANDS
def test_file_of_a_development_version(say: Say, tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "digests.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((OLDER / "schema_3.sql").read_text())
    before = path.read_bytes()
    code, said = say(*command, "--ledger", f"sqlite:{path}")
    assert (code, said) == (
        1,
        f"auditor: --ledger sqlite:{path} is the file of a development version of the auditor or of another program:"
        f" name a new file, for example sqlite:{tmp_path}/digests-new.db",
    )
    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {path.name}


@pytest.fixture
def table(moto_url: str) -> Iterator[Any]:
    """A new table. put: writes an item. items: returns those that it has."""
    name = f"older-{uuid4().hex}"
    asyncio.run(create_table(name, endpoint_url=moto_url))
    with closing(boto3.client("dynamodb", endpoint_url=moto_url)) as dynamodb:
        yield SimpleNamespace(
            name=name,
            put=lambda item: dynamodb.put_item(TableName=name, Item=item),
            items=lambda: dynamodb.scan(TableName=name)["Items"],
        )


def refused(table: Any) -> tuple[int, str]:
    return (
        1,
        f"auditor: the ledger table '{table.name}' was written by a development version of the auditor or by another"
        " program: create a new table and name it with --ledger dynamodb:TABLE or the stack's parameter ledger",
    )


@COMMANDS
def test_table_of_a_development_version(say: Say, table: Any, command: tuple[str, ...]) -> None:
    for item in json.loads((OLDER / "schema_3.json").read_text()):
        table.put(item)
    before = table.items()
    assert say(*command, "--ledger", f"dynamodb:{table.name}") == refused(table)
    assert table.items() == before


def test_table_whose_items_say_no_format(say: Say, table: Any) -> None:
    _, *rows = json.loads((OLDER / "schema_3.json").read_text())
    for row in rows:
        table.put(row)
    before = table.items()
    assert say("hash", f"s3://{BUCKET}", "--ledger", f"dynamodb:{table.name}") == refused(table)
    assert table.items() == before
