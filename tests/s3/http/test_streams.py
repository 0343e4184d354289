"""aiohttp's transport with bodies too large to buffer, and with proxies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from auditor.s3.http.aiohttp import AiohttpStream, AiohttpTransport
from auditor.s3.http.base import (
    LARGEST_BODY,
    BrokenAnswerError,
    ConnectionLostError,
    MinimumRate,
    Server,
    TransportError,
    TransportTimeoutError,
)
from tests.s3.http.certificates import Tls
from tests.s3.http.conftest import get, pieces
from tests.s3.http.raw_server import OK, Peer, RawServer, answering, once, serving


@asynccontextmanager
async def opened(raw: RawServer, **fields: Any) -> AsyncIterator[AiohttpTransport]:
    transport = AiohttpTransport(Server(**{"host": "127.0.0.1", "port": raw.port, "connections": 1, **fields}))
    try:
        yield transport
    finally:
        await transport.close()


async def read(transport: AiohttpTransport) -> None:
    async with transport.stream(get()) as stream:
        async for _ in pieces(stream, 99):
            pass


async def test_body_larger_than_what_is_held_whole() -> None:
    piece, count = bytes(2**20), LARGEST_BODY // 2**20 + 1

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nETag: e\r\nContent-Length: %d\r\n\r\n" % (len(piece) * count))
        for _ in range(count):
            await peer.send(piece)
        await peer.gone()

    size = 0
    async with serving(script) as server, opened(server) as transport, transport.stream(get()) as stream:
        assert (stream.status, stream.reason, stream.headers[b"etag"]) == (200, "OK", b"e")
        async for chunk in pieces(stream, 65536):
            assert 0 < len(chunk) <= 65536
            size += len(chunk)
    assert size == len(piece) * count


async def test_connection_is_kept_after_a_whole_body_and_closed_after_a_part() -> None:
    async with serving(answering(OK)) as server, opened(server) as transport:
        for _ in range(2):
            async with transport.stream(get()) as stream:
                assert [chunk async for chunk in pieces(stream, 1)] == [b"o", b"k"]
        assert server.accepted == 1
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + bytes(99)
    async with serving(answering(large)) as server, opened(server) as transport:
        for _ in range(2):
            async with transport.stream(get()) as stream:
                assert await anext(pieces(stream, 99)) == bytes(99)
        assert server.accepted == 2


async def test_one_who_reads_fails() -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + bytes(99)
    async with serving(answering(large)) as server, opened(server) as transport:
        with pytest.raises(ZeroDivisionError):
            async with transport.stream(get()):
                raise ZeroDivisionError
        await server.until(lambda it: it.open == 0)


@pytest.mark.parametrize("ending", ["close", "reset"])
async def test_stream_ends_early(ending: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"part")
        if ending == "reset":
            await asyncio.sleep(0.01)
            await peer.reset()

    async with serving(script) as server, opened(server) as transport, transport.stream(get()) as stream:
        with pytest.raises(ConnectionLostError):
            assert [chunk async for chunk in pieces(stream, 9)] == [b"part"]


async def test_stream_falls_silent() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"part")
        await peer.gone()

    async with serving(script) as server, opened(server, read_timeout=0.1) as transport:
        with pytest.raises(TransportTimeoutError):
            async with transport.stream(get()) as stream:
                assert [chunk async for chunk in pieces(stream, 9)] == [b"part"]
        await server.until(lambda it: it.open == 0)


class Late:
    """A body whose limit has ended, before its reader is told."""

    async def read(self, size: int) -> bytes:
        await asyncio.sleep(60)
        return b""

    def exception(self) -> Exception:
        return aiohttp.SocketTimeoutError()


async def test_both_limits_end_at_once() -> None:
    """On a busy machine our own limit may end before aiohttp tells the reader of its limit."""
    response = SimpleNamespace(status=200, version=aiohttp.HttpVersion11, reason="OK", raw_headers=(), content=Late())
    stream = AiohttpStream(cast(aiohttp.ClientResponse, response), 0.0, MinimumRate(1, 1))
    with pytest.raises(TransportTimeoutError):
        await stream.readinto(memoryview(bytearray(5)))


@pytest.mark.parametrize("wrong", [b"xyz\r\n", b"1\r\nabc\r\n", b"fffffffffffffffff\r\n"])
async def test_chunks_go_wrong_after_the_head(wrong: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await asyncio.sleep(0.02)
        await peer.send(wrong)
        await peer.gone()

    async with serving(script) as server, opened(server, read_timeout=0.2) as transport:
        with pytest.raises(BrokenAnswerError):
            await read(transport)
        await server.until(lambda it: it.open == 0)


async def test_cancelled_in_mid_stream() -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + bytes(99)

    async with serving(answering(large)) as server, opened(server) as transport:
        for _ in range(2):
            task = asyncio.create_task(read(transport))
            await server.until(lambda it: it.open == 1)
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.until(lambda it: it.open == 0)


async def test_plain_request_through_a_proxy() -> None:
    async with serving(answering(OK)) as proxy, opened(proxy, host="bucket.test", port=8080, proxy=url(proxy)) as it:
        assert (await it.send(get("/a%2Fb?c=d"))).body == b"ok"
        assert (await it.send(get("/a%2Fb?c=d"))).body == b"ok"
    assert proxy.requests[0].startswith(b"GET http://bucket.test:8080/a%2Fb?c=d HTTP/1.1\r\nHost: bucket.test\r\n")
    assert proxy.accepted == 1


async def test_tls_through_a_proxy(tls: Tls) -> None:
    async with serving(answering(OK), tls.server) as server:

        async def script(peer: Peer) -> None:
            await peer.request()
            await peer.join(server.port)

        fields = {"host": "localhost", "port": server.port, "tls": tls.client}
        async with serving(script) as proxy, opened(server, proxy=url(proxy, "me:secret@"), **fields) as transport:
            for _ in range(2):
                assert (await transport.send(get("/a%2Fb"))).body == b"ok"
    assert proxy.requests[0].startswith(b"CONNECT localhost:%d HTTP/1.1\r\n" % server.port)
    assert b"\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n" in proxy.requests[0]
    assert len(proxy.requests) == 1
    assert server.requests == [b"GET /a%2Fb HTTP/1.1\r\nHost: bucket.test\r\n\r\n"] * 2


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(answering(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"), id="refused"),
        pytest.param(answering(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"), id="no-way"),
        pytest.param(once(b"HTTP/1.1 200 Connection established\r\n\r\n"), id="closed"),
        pytest.param(once(), id="silent"),
    ],
)
async def test_proxy_fails(tls: Tls, script: Any) -> None:
    fields = {"host": "localhost", "port": 443, "tls": tls.client}
    async with serving(script) as proxy, opened(proxy, proxy=url(proxy), **fields) as transport:
        with pytest.raises(ConnectionLostError):
            await transport.send(get())


async def test_no_proxy_listens() -> None:
    async with serving(answering(OK)) as proxy:
        pass
    async with opened(proxy, host="bucket.test", port=80, proxy=url(proxy)) as transport:
        with pytest.raises(TransportError):
            await transport.send(get())


def url(proxy: RawServer, user: str = "") -> str:
    return f"http://{user}127.0.0.1:{proxy.port}"
