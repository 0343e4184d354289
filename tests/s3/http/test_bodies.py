"""Bodies read into a buffer of the reader's own: cut at every kind of point, read slowly, left unread, dripping."""

from __future__ import annotations

import asyncio
import random
import resource
from typing import Any

import pytest

from auditor.s3.http.base import (
    ConnectionLostError,
    Stream,
    StreamingTransport,
    TransportError,
    TransportTimeoutError,
)
from auditor.s3.http.streaming import DRAINED, HEAD_SIZE
from tests.s3.http.certificates import Tls
from tests.s3.http.conftest import STREAMS, get, opener, pieces
from tests.s3.http.raw_server import OK, Peer, RawServer, Script, answering, by_name, serving

BODY = random.Random(5).randbytes(300_000)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY)


@pytest.fixture(params=STREAMS)
def kind(request: pytest.FixtureRequest) -> str:
    """A streaming transport's name."""
    return str(request.param)


@pytest.fixture(params=["plain", "tls"])
def secured(request: pytest.FixtureRequest, tls: Tls) -> Tls | None:
    """Certificates, or None for plain HTTP."""
    return tls if request.param == "tls" else None


def opened(raw: RawServer, kind: str = "thin", tls: Tls | None = None, **fields: Any) -> Any:
    return opener(kind, STREAMS)(raw, **{"connections": 1, "tls": tls and tls.client, **fields})


def listening(script: Script, tls: Tls | None) -> Any:
    return serving(script, None if tls is None else tls.server)


async def read(transport: StreamingTransport, size: int = 65_536, target: str = "/") -> bytes:
    async with transport.stream(get(target)) as stream:
        return b"".join([piece async for piece in pieces(stream, size)])


async def until_broken(stream: Stream) -> tuple[bytes, TransportError]:
    """What comes of a body until its connection breaks, read into a thousand bytes at a time."""
    got, buffer = bytearray(), memoryview(bytearray(1000))
    while True:
        try:
            assert await stream.readinto(buffer) == 1000
        except ConnectionLostError as error:
            return bytes(got + buffer[: error.read]), error
        got += buffer


async def test_body_in_buffers_of_every_size(kind: str, secured: Tls | None) -> None:
    sizes = [1000, 16_384, 299_999, 300_000, 300_001] * 2
    async with listening(answering(HEAD + BODY), secured) as server, opened(server, kind, secured) as transport:
        for size in sizes:
            async with transport.stream(get()) as stream:
                assert (stream.status, stream.reason, stream.headers) == (200, "OK", {b"content-length": b"300000"})
                got = [piece async for piece in pieces(stream, size)]
            assert b"".join(got) == BODY
            assert {len(piece) for piece in got[:-1]} <= {size}
        assert server.accepted == 1


async def test_body_around_the_size_of_what_comes_with_the_head(secured: Tls | None) -> None:
    sent: dict[str, tuple[bytes, ...]] = {}
    for length in (0, 1, 10_000, HEAD_SIZE - 100, HEAD_SIZE, HEAD_SIZE + 1, 2 * HEAD_SIZE):
        head, body = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length, BODY[:length]
        sent |= {f"{length}/at-once": (head + body,), f"{length}/apart": (head, *filter(None, [body]))}
    async with listening(by_name(sent), secured) as server, opened(server, "thin", secured) as transport:
        for name in [*sent] * 2:
            assert await read(transport, target=f"/{name}") == BODY[: int(name.partition("/")[0])], name
        assert server.accepted == 1


@pytest.mark.parametrize("ending", ["close", "cut", "reset"])
async def test_cut_after_so_many_bytes(kind: str, secured: Tls | None, ending: str) -> None:
    async def script(peer: Peer) -> None:
        after = int(await peer.name())
        await peer.send(HEAD, *filter(None, [BODY[:after]]))
        if ending == "cut":
            await asyncio.sleep(0.02)
            peer.cut()
        elif ending == "reset":
            await asyncio.sleep(0.02)
            await peer.reset()

    async with listening(script, secured) as server, opened(server, kind, secured) as transport:
        for after in (0, 1, 999, 1000, 65_536, len(BODY) - 1):
            async with transport.stream(get(f"/{after}")) as stream:
                got, broken = await until_broken(stream)
            await server.until(lambda it: it.open == 0)
            assert got == BODY[: len(got)], after
            assert broken.read == len(got) % 1000, after
            if ending == "close" and kind == "thin":
                assert len(got) == after


async def test_nothing_that_came_before_a_farewell_is_lost_on_a_slow_reader(secured: Tls | None) -> None:
    """The loops' TLS drops what it holds when the connection ends while reading is paused."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n" + BODY[:200_000])
        await asyncio.sleep(0.05)
        peer.cut()

    async with listening(script, secured) as server, opened(server, "thin", secured) as transport:
        async with transport.stream(get()) as stream:
            await asyncio.sleep(0.2)
            got = []
            async for piece in pieces(stream, 7000):
                got.append(piece)
                await asyncio.sleep(0)
        assert b"".join(got) == BODY[:200_000]


def chunked(body: bytes) -> bytes:
    chunks = [body[start : start + 7777] for start in range(0, len(body), 7777)]
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in [*chunks, b""])


FRAMINGS: dict[str, tuple[bytes, bytes]] = {
    "until-close": (b"Connection: close", BODY),
    "chunked": (b"Transfer-Encoding: chunked", chunked(BODY)),
}


async def test_body_without_a_length(secured: Tls | None) -> None:
    """Without TLS nobody can tell where one that ends with the connection was cut: it is then whole."""

    async def script(peer: Peer) -> None:
        framing, how = (await peer.name()).split("/")
        said, sent = FRAMINGS[framing]
        await peer.send(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % said, sent if how == "whole" else sent[:-2000])
        if how != "whole":
            await asyncio.sleep(0.05)
            peer.cut()

    async with listening(script, secured) as server, opened(server, "thin", secured) as transport:
        for framing in FRAMINGS:
            assert await read(transport, 9999, f"/{framing}/whole") == BODY, framing
            if framing == "chunked" or secured:
                with pytest.raises(ConnectionLostError):
                    await read(transport, 9999, f"/{framing}/cut")


async def test_slow_reader_makes_the_server_wait(secured: Tls | None) -> None:
    size = 24 * 2**20
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // 2**16):
            await peer.send(bytes(2**16))
            sent += 2**16

    async with listening(script, secured) as server, opened(server, "thin", secured) as transport:
        async with transport.stream(get()) as stream:
            buffer = memoryview(bytearray(2**16))
            got = await stream.readinto(buffer)
            await asyncio.sleep(0.5)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            # The kernel's buffers of both ends, and those of both ends' TLS.
            assert sent < size / 4
            while count := await stream.readinto(buffer):
                got += count
        assert got == size
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024


async def test_connection_is_kept_where_only_a_little_is_left_unread(kind: str, secured: Tls | None) -> None:
    left = {1: True, DRAINED - 1: True, DRAINED: True, 9_999_999: False}
    sent = {
        str(size): (
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1000 + size),
            BODY[:1000],
            BODY[1000 : 1000 + min(size, DRAINED)],
        )
        for size in left
    }
    async with listening(by_name(sent), secured) as server, opened(server, kind, secured) as transport:
        accepted = 1
        for size, kept in left.items():
            for _ in range(2):
                async with transport.stream(get(f"/{size}")) as stream:
                    assert await stream.readinto(memoryview(bytearray(1000))) == 1000
                await server.until(lambda it, kept=kept: kept or it.open == 0)
                assert kind == "aiohttp" or server.accepted == accepted, size
                accepted += not kept


async def test_bytes_behind_a_body_left_unread_end_its_connection() -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    async with serving(answering(raw, b"whole " + b"one" + OK)) as server, opened(server) as transport:
        for number in (1, 2, 3):
            async with transport.stream(get()) as stream:
                assert await stream.readinto(memoryview(bytearray(1))) == 1
            assert server.accepted == number


async def test_reader_that_fails_leaves_no_connection_behind(kind: str) -> None:
    async with serving(answering(HEAD + BODY[:99])) as server, opened(server, kind) as transport:
        with pytest.raises(ZeroDivisionError):
            async with transport.stream(get()):
                raise ZeroDivisionError
        await server.until(lambda it: it.open == 0)


async def drops(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD)
    for byte in BODY:
        await peer.send(bytes([byte]))
        await asyncio.sleep(0.01)


async def test_dripping_body_ends_with_a_timeout(kind: str, secured: Tls | None) -> None:
    fields: dict[str, Any] = {"read_timeout": 30, "least_rate": 10_000, "slow_seconds": 0.3}
    async with listening(drops, secured) as server, opened(server, kind, secured, **fields) as transport:
        async with transport.stream(get()) as stream:
            with pytest.raises(TransportTimeoutError) as caught:
                await asyncio.wait_for(stream.readinto(memoryview(bytearray(len(BODY)))), 10)
        assert 0 < caught.value.read < 300
        await server.until(lambda it: it.open == 0)


async def test_time_in_which_nobody_reads_is_not_the_servers(kind: str) -> None:
    fields: dict[str, Any] = {"read_timeout": 0.1, "least_rate": 100_000, "slow_seconds": 0.1}
    async with serving(answering(HEAD + BODY)) as server, opened(server, kind, **fields) as transport:
        async with transport.stream(get()) as stream:
            got = []
            async for piece in pieces(stream, 100_000):
                got.append(piece)
                await asyncio.sleep(0.25)
        assert b"".join(got) == BODY
