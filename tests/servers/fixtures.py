"""The fixtures that start servers; tests/conftest.py makes them known everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.stub import StubServer
from tests.servers.world import World


@pytest.fixture
def stub() -> Iterator[StubServer]:
    """A running stub whose world has one empty bucket, "audited"; change `stub.world` at any time."""
    world = World()
    world.add("audited")
    with StubServer(world) as server:
        yield server
