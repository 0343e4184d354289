"""A ledger of each kind, empty, and a way to open it a second time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from tests.conformance.ledgers import OpenLedger


@pytest.fixture(params=["sqlite", "dynamodb"])
async def opener(request: pytest.FixtureRequest, tmp_path: Path) -> OpenLedger:
    if request.param == "sqlite":
        return opening(f"sqlite:{tmp_path / 'ledger.db'}")
    url: str = request.getfixturevalue("moto_url")
    return opening(f"dynamodb:{await new_table(url)}", url)


def opening(uri: str, endpoint_url: str | None = None) -> OpenLedger:
    def opened(clock: Callable[[], float] = time.time) -> AbstractAsyncContextManager[Ledger]:
        return open_ledger(uri, endpoint_url=endpoint_url, clock=clock)

    return opened


@cache
def dynamodb(url: str) -> Any:
    """The SDK's client of a server, which takes 20 ms to make."""
    return boto3.client("dynamodb", endpoint_url=url)


async def new_table(url: str) -> str:
    """Make an empty table, and return its name."""
    table = f"ledger-{uuid4().hex}"
    dynamodb(url).create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": part, "AttributeType": "S"} for part in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    )
    return table


@pytest.fixture
async def ledger(opener: OpenLedger) -> AsyncIterator[Ledger]:
    async with opener() as opened:
        yield opened
