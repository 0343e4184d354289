"""The benchmarks' server answers the measured calls as S3 does, with the latency and refusals of its settings."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager

import pytest

from auditor.aws.connection import Connection
from auditor.model.object import ALL_USERS, Grant
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine, ListQuery, Span
from benchmarks.clients.hashers import article, ours
from benchmarks.meter import Meter
from benchmarks.server import objects
from benchmarks.server.answers import Answers
from benchmarks.server.behaviour import Behaviour, Gate
from tests.s3.engines.common import list_all, pieces, read
from tests.support.servers.http_server import listening


@pytest.fixture
def gate() -> Gate:
    return Gate(Behaviour(objects=2500))


@pytest.fixture
async def url(gate: Gate) -> AsyncIterator[str]:
    async with listening(Answers(gate)) as where:
        yield where


@pytest.fixture
def url_of_thread() -> Iterator[str]:
    """A server in a thread of its own, for clients that block."""
    with asyncio.Runner() as runner:
        started: Future[str] = Future()
        stop = asyncio.Event()

        async def serve() -> None:
            async with listening(Answers(Gate(Behaviour()))) as where:
                started.set_result(where)
                await stop.wait()

        thread = threading.Thread(target=runner.run, args=(serve(),))
        thread.start()
        yield started.result(10)
        runner.get_loop().call_soon_threadsafe(stop.set)
        thread.join(10)


@asynccontextmanager
async def opened(name: str, url: str) -> AsyncIterator[Engine]:
    connection = Connection(bucket=objects.BUCKET, region="us-east-1", endpoint_url=url, concurrency=2)
    async with ENGINES[name](connection) as engine:
        yield engine


@pytest.fixture(params=ENGINES)
async def engine(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Engine]:
    async with opened(request.param, url) as made:
        yield made


async def test_every_page_of_the_listing_holds_what_is_computed(engine: Engine) -> None:
    refs, _, pages = await list_all(engine, ListQuery())
    assert [ref.key for ref in refs] == [objects.key_of(number) for number in range(2500)]
    assert pages == 3
    assert (refs[7].etag, refs[7].size, refs[7].owner) == (objects.etag_of(7), objects.size_of(7), objects.OWNER)


async def test_a_head_agrees_with_the_listing(engine: Engine) -> None:
    head = await engine.head(objects.key_of(7), None, checksum=False)
    assert (head.etag, head.content_length) == (objects.etag_of(7), objects.size_of(7))
    assert head.server_side_encryption == "AES256"
    assert head.metadata == {"team": "warehouse", "build": "7", "source": "export"}


async def test_every_thousandth_object_is_public(engine: Engine) -> None:
    owners = Grant(objects.OWNER, "FULL_CONTROL")
    assert (await engine.get_acl(objects.key_of(1000), None)).grants == (owners, Grant(ALL_USERS, "READ"))
    assert (await engine.get_acl(objects.key_of(1001), None)).grants == (owners,)


async def test_a_body_and_a_span_of_it_are_the_bytes_that_its_name_says(engine: Engine) -> None:
    size = 2 * len(objects.BLOCK) + 5
    body = await read(engine, f"{objects.SIZED}{size}", 1 << 20)
    assert body == bytes(objects.body_of(size))
    async with engine.get(f"{objects.SIZED}{size}", None, None, Span(len(objects.BLOCK) - 3, size - 1)) as span:
        assert b"".join([piece async for piece in pieces(span, 1 << 20)]) == body[len(objects.BLOCK) - 3 :]


def test_the_hashers_agree_with_each_other_and_with_the_bytes(url_of_thread: str) -> None:
    size = 3_000_000
    found = [hasher(Meter(), url=url_of_thread, size=size, chunk=1)["digest"] for hasher in (ours, article)]
    assert found == [hashlib.sha1(objects.body_of(size)).hexdigest()] * 2
