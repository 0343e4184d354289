"""A ledger of each kind, empty, and a way to open it a second time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest

from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.ledger.dynamodb.ledger import create_table


class Open(Protocol):
    """Opens one and the same ledger, as often as it is called. clock: seconds since the epoch."""

    def __call__(self, clock: Callable[[], float] = ...) -> AbstractAsyncContextManager[Ledger]: ...


@pytest.fixture(params=["sqlite", "dynamodb"])
async def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "sqlite":
        return opening(f"sqlite:{tmp_path / 'ledger.db'}")
    url: str = request.getfixturevalue("moto_url")
    return await new_table(url)


def opening(uri: str, endpoint_url: str | None = None) -> Open:
    def opened(clock: Callable[[], float] = time.time) -> AbstractAsyncContextManager[Ledger]:
        return open_ledger(uri, endpoint_url=endpoint_url, clock=clock)

    return opened


async def new_table(url: str) -> Open:
    table = f"ledger-{uuid4().hex}"
    await create_table(table, endpoint_url=url)
    return opening(f"dynamodb:{table}", url)


@pytest.fixture
async def ledger(opener: Open) -> AsyncIterator[Ledger]:
    async with opener() as opened:
        yield opened
