"""A closed connection is freed without the garbage collector, which hardly ever runs in an audit."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from auditor.s3.http.connection import HttpConnection
from tests.s3.http.certificates import Tls
from tests.s3.http.conftest import get, opener
from tests.s3.http.raw_server import OK, answering, serving

MANY = 8


@contextmanager
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _connections() -> int:
    return sum(isinstance(one, HttpConnection) for one in gc.get_objects())


@pytest.mark.parametrize("kind", ["thin", "streams"])
@pytest.mark.parametrize("encrypted", [False, True])
async def test_connections_closed_for_idleness_are_freed(kind: str, tls: Tls, encrypted: bool) -> None:
    context = tls.client if encrypted else None
    async with serving(answering(OK), tls=tls.server if encrypted else None) as server:
        with no_collector():
            async with opener(kind)(server, tls=context, connections=MANY, idle_seconds=0.05) as transport:
                await asyncio.gather(*(transport.send(get()) for _ in range(MANY)))
                assert _connections() == MANY
                while transport.statistics().opened == MANY:
                    await asyncio.sleep(0.1)
                    await transport.send(get())
                for _ in range(100):
                    if _connections() == 1:
                        break
                    await asyncio.sleep(0.01)
                assert _connections() == 1
