"""The fixtures that start servers; tests/conftest.py makes them known everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import FAKE
from tests.support.servers.clients import BUCKET, client
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket, World
from tools.local_aws.server import AtomicMotoServer


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    """moto's server, with every service that it has; one for the tests of a module."""
    server = AtomicMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@contextmanager
def stub_of(world: World) -> Iterator[StubServer]:
    """A running stub, and the fake credentials of each test: for a fixture that the tests of a module share."""
    with pytest.MonkeyPatch.context() as patch, StubServer(world) as server:
        for name, value in FAKE.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture
def stub() -> Iterator[StubServer]:
    """A running stub whose world has one empty bucket, "audited"; change `stub.world` at any time."""
    world = World()
    world.add(BUCKET)
    with StubServer(world) as server:
        yield server


@pytest.fixture
def bucket(stub: StubServer) -> StubBucket:
    """The stub's bucket "audited"."""
    return stub.world.buckets[BUCKET]


@pytest.fixture
def s3(stub: StubServer) -> Iterator[Any]:
    """A boto3 client of the stub; one attempt a call."""
    made = client("s3", stub.url)
    yield made
    made.close()
