"""A ledger of each kind, empty, and a way to open it a second time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from uuid import uuid4

import pytest

from auditor.ledgers import open_ledger
from auditor.ledgers.dynamodb import create_table
from auditor.ledgers.interface import Ledger

Open = Callable[[], AbstractAsyncContextManager[Ledger]]


@pytest.fixture(params=["sqlite", "dynamodb"])
async def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens one and the same ledger, as often as it is called."""
    if request.param == "sqlite":
        return lambda: open_ledger(f"sqlite:{tmp_path / 'ledger.db'}")
    url = request.getfixturevalue("moto_url")
    table = f"ledger-{uuid4().hex}"
    await create_table(table, endpoint_url=url)
    return lambda: open_ledger(f"dynamodb:{table}", endpoint_url=url)


@pytest.fixture
async def ledger(opener: Open) -> AsyncIterator[Ledger]:
    async with opener() as opened:
        yield opened
