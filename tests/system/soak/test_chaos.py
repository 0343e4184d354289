"""Twenty workers under everything at once, on both ledgers. SOAK_SEED chooses other objects and other moments."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path

import pytest

from auditor.ledger.dynamodb.ledger import create_table
from tests.support.chaos import campaign
from tests.support.servers.stub import StubServer
from tests.system.real.dynamodb import dynamodb_local

SEED = int(os.environ.get("SOAK_SEED", "14"))
twenty = partial(campaign, workers=20, rounds=80, outage=(30, 50), pause=0.5)
"""An hour stands for 20 rounds. A worker asks a ledger that refuses after 1, 2, 4 .. seconds, and a function hides its
messages for a fiftieth of its usual time."""


def test_with_sqlite(stub: StubServer, moto_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = f"sqlite:{tmp_path / 'ledger.db'}"
    told = twenty(stub, moto_url, tmp_path, ledger, seed=SEED)
    with capsys.disabled():
        print(f"\nSQLite, {told}")


def test_with_dynamodb_local(
    stub: StubServer, moto_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with dynamodb_local(tmp_path / "server.log") as server:
        asyncio.run(create_table("chaos", region="us-east-1", endpoint_url=server.url))
        told = twenty(stub, moto_url, tmp_path, "dynamodb:chaos", dynamodb=server.url, seed=SEED + 1)
    with capsys.disabled():
        print(f"\nDynamoDB Local, {told}")
