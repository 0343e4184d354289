"""A ledger and a queue for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from tests.support.fakes.hashing import MemoryQueue


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as opened:
        yield opened


@pytest.fixture
def dead() -> MemoryQueue:
    return MemoryQueue()


@pytest.fixture
def queue(dead: MemoryQueue) -> MemoryQueue:
    return MemoryQueue(dead)
