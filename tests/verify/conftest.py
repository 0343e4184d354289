"""A bench for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.servers.stub import StubServer
from tests.support.verification import Bench, make_bench


@pytest.fixture
async def bench(stub: StubServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with make_bench(stub, tmp_path) as made:
        yield made
