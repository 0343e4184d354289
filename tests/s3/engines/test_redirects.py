"""No engine follows a server's redirect, and none sends the session token there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.s3.engines.common import CALLS, failure_of
from tests.s3.engines.conftest import Opening
from tests.support.servers.clients import BUCKET
from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_calls import Reply
from tests.support.servers.world import World


@pytest.fixture
def bait() -> Iterator[StubServer]:
    """A server that answers just as well."""
    world = World()
    world.add(BUCKET).put("key", b"not the audited one")
    with StubServer(world) as server:
        yield server


async def test_a_redirect_is_a_failure_and_nobody_asks_the_other_host(
    opening: Opening, bait: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret")
    statuses = iter([status for status in (301, 302, 307, 308) for _ in CALLS])
    elsewhere = {"Location": f"{bait.url}/{BUCKET}/key"}
    with HookedServer(hook=lambda call: Reply(next(statuses), elsewhere)) as redirecting:
        async with opening(endpoint_url=redirecting.url) as engine:
            for call in [*CALLS.values()] * 4:
                await failure_of(engine, call)
    assert [logged.operation for logged in redirecting.requests] == [*CALLS] * 4
    assert bait.requests == []
