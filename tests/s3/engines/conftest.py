"""Every engine, by name, connected to the stub, on a loop that it must not block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from auditor.aws.connection import Connection
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine
from tests.support.engine_names import INSTALLED
from tests.support.loop_blocking import free_loop as free_loop
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

Opening = Callable[..., AbstractAsyncContextManager[Engine]]


@pytest.fixture(params=INSTALLED)
def name(request: pytest.FixtureRequest) -> str:
    """An engine's name."""
    return str(request.param)


@pytest.fixture
def opening(name: str, stub: StubServer) -> Opening:
    """Opens the engine; arguments: of Connection."""

    def opened(**fields: Any) -> AbstractAsyncContextManager[Engine]:
        given = {"bucket": BUCKET, "endpoint_url": stub.url, "region": "us-east-1", "concurrency": 4, **fields}
        return ENGINES[name](Connection(**given))

    return opened


@pytest.fixture
async def engine(opening: Opening) -> AsyncIterator[Engine]:
    """The engine, open."""
    async with opening() as made:
        yield made
