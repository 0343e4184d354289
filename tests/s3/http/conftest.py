"""Both transports on both event loops; a test fails for a blocked loop and for an error that nobody awaits."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from auditor.aio.loop import new_loop
from auditor.s3.http.aiohttp import AiohttpTransport
from auditor.s3.http.base import (
    LARGEST_BODY,
    BrokenAnswerError,
    Request,
    Response,
    Server,
    Stream,
    Transport,
    TransportError,
    TransportTimeoutError,
)
from auditor.s3.http.pool import HttpTransport, Statistics, ThinStreams
from tests.s3.http.certificates import Tls, made
from tests.s3.http.raw_server import RawServer, breath
from tests.support.loop_blocking import free_loop as free_loop


class Whole:
    """The streaming transport, with the interface of the buffering one."""

    def __init__(self, server: Server, size: int = 10_000) -> None:
        self._size = size
        self.streams = ThinStreams(server)
        self._limit = server.answer_timeout

    @property
    def open_connections(self) -> int:
        return self.streams.statistics().idle

    def keep_idle(self, connections: int) -> None:
        raise NotImplementedError

    async def send(self, request: Request) -> Response:
        async with self.streams.stream(request) as stream:
            held = []
            try:
                async with asyncio.timeout(self._limit):
                    async for piece in pieces(stream, self._size):
                        held.append(piece)
                        if len(held) * self._size > LARGEST_BODY:
                            raise BrokenAnswerError("larger than what is held whole")
            except TimeoutError as error:
                raise TransportTimeoutError("the body was not complete in time") from error
        return Response(stream.status, stream.reason, stream.headers, b"".join(held))

    async def close(self) -> None:
        await self.streams.close()

    def statistics(self) -> Statistics:
        return self.streams.statistics()


TRANSPORTS: Mapping[str, Callable[[Server], Transport]] = {
    "thin": HttpTransport,
    "streams": Whole,
    "aiohttp": AiohttpTransport,
}
STREAMS: Mapping[str, Callable[[Server], Any]] = {"thin": ThinStreams, "aiohttp": AiohttpTransport}
"""The transports for bodies that are too large for memory."""
Opening = Callable[..., AbstractAsyncContextManager[Any]]


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": new_loop}


@pytest.fixture(params=TRANSPORTS)
def name(request: pytest.FixtureRequest) -> str:
    """A transport's name."""
    return str(request.param)


@pytest.fixture
def opening(name: str) -> Opening:
    """Opens the transport to a server; arguments: the server, and fields of Server."""
    return opener(name)


@pytest.fixture
def thin() -> Opening:
    """Opens our own transport, for tests that do not apply to aiohttp."""
    return opener("thin")


def opener(name: str, kinds: Mapping[str, Callable[[Server], Any]] = TRANSPORTS) -> Opening:
    @asynccontextmanager
    async def opened(raw: RawServer, **fields: Any) -> AsyncIterator[Any]:
        transport = kinds[name](Server(**{"host": "127.0.0.1", "port": raw.port, "connections": 4, **fields}))
        try:
            yield transport
        finally:
            await transport.close()

    return opened


@pytest.fixture
def own(name: str) -> Opening:
    """Opens the transports that use our own parser."""
    if name == "aiohttp":
        pytest.skip("it has a parser of its own")
    return opener(name)


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """Certificates for `localhost` and 127.0.0.1."""
    return made(tmp_path_factory.mktemp("tls"), "localhost", "127.0.0.1")


@pytest.fixture(autouse=True)
async def nothing_unseen() -> AsyncIterator[None]:
    """Fails for an error that nobody awaited: of a dropped future, or in a transport's callback."""
    unseen: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unseen.append(context))
    yield
    await breath()
    gc.collect()
    await breath()
    assert unseen == []


def get(target: str = "/bucket/key", *headers: tuple[str, str]) -> Request:
    """A GET."""
    return Request("GET", target, (("Host", "bucket.test"), *headers))


def head(target: str = "/bucket/key", *headers: tuple[str, str]) -> Request:
    """A HEAD."""
    return Request("HEAD", target, (("Host", "bucket.test"), *headers))


async def outcome(sending: Awaitable[Response]) -> Response | type[TransportError]:
    """The answer, or the class of the failure."""
    try:
        return await sending
    except TransportError as error:
        return type(error)


async def pieces(stream: Stream, size: int) -> AsyncIterator[bytes]:
    """The rest of a body in pieces of `size` bytes, but for the last; also the bytes before an error."""
    buffer = memoryview(bytearray(size))
    while True:
        try:
            count = await stream.readinto(buffer)
        except TransportError as error:
            if error.read:
                yield bytes(buffer[: error.read])
            raise
        if not count:
            return
        yield bytes(buffer[:count])


def resent(transport: Transport) -> int:
    """The number of requests that the transport sent again."""
    if isinstance(transport, (HttpTransport, Whole)):
        return transport.statistics().resent
    assert isinstance(transport, AiohttpTransport)
    return transport.resent
