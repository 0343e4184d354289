"""No engine follows a server's redirect, and none sends the session token there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiohttp import web

from tests.s3.engines.common import CALLS, failure_of
from tests.s3.engines.conftest import Opening
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_calls import Call
from tests.support.servers.world import World


class Redirecting(StubServer):
    """Answers every request with `status` and the address of another server."""

    status = 307
    elsewhere = ""

    def __enter__(self) -> Redirecting:
        super().__enter__()
        return self

    async def _answer(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return web.Response(status=self.status, headers={"Location": f"{self.elsewhere}{request.raw_path}"})


@pytest.fixture
def bait() -> Iterator[StubServer]:
    """A server that answers just as well."""
    world = World()
    world.add(BUCKET).put("key", b"not the audited one")
    with StubServer(world) as server:
        yield server


@pytest.fixture
def redirecting(bait: StubServer) -> Iterator[Redirecting]:
    with Redirecting() as server:
        server.elsewhere = bait.url
        yield server


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_a_failure_and_nobody_asks_the_other_host(
    opening: Opening, redirecting: Redirecting, bait: StubServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret")
    redirecting.status = status
    async with opening(endpoint_url=redirecting.url) as engine:
        for call in CALLS.values():
            await failure_of(engine, call)
    assert [logged.operation for logged in redirecting.requests] == list(CALLS)
    assert bait.requests == []
