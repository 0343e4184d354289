"""Bodies read into a buffer of the reader's own: cut at every kind of point, read slowly, left unread, dripping."""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from auditor.s3.http import streaming
from auditor.s3.http.aiohttp import AiohttpTransport
from auditor.s3.http.base import (
    ConnectionLostError,
    MinimumRate,
    Server,
    Stream,
    StreamingTransport,
    TransportError,
    TransportTimeoutError,
)
from auditor.s3.http.streaming import DRAINED, HEAD_SIZE
from auditor.s3.http.transport import ThinStreams
from tests.s3.http.certificates import Tls
from tests.s3.http.conftest import get, pieces
from tests.s3.http.raw_server import OK, Peer, RawServer, Script, answering, serving

STREAMS: dict[str, Callable[[Server], Any]] = {"thin": ThinStreams, "aiohttp": AiohttpTransport}
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


@asynccontextmanager
async def opened(raw: RawServer, kind: str = "thin", tls: Tls | None = None, **fields: Any) -> AsyncIterator[Any]:
    given = {"host": "127.0.0.1", "port": raw.port, "connections": 1, "tls": tls and tls.client, **fields}
    transport: StreamingTransport = STREAMS[kind](Server(**given))
    try:
        yield transport
    finally:
        await transport.close()


def listening(script: Script, tls: Tls | None) -> Any:
    return serving(script, None if tls is None else tls.server)


async def read(transport: StreamingTransport, size: int = 65_536) -> bytes:
    async with transport.stream(get()) as stream:
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


@pytest.mark.parametrize("size", [1000, 16_384, 65_536, 299_999, 300_000, 300_001, 1 << 20])
async def test_body_in_buffers_of_every_size(kind: str, secured: Tls | None, size: int) -> None:
    async with listening(answering(HEAD + BODY), secured) as server, opened(server, kind, secured) as transport:
        for _ in range(2):
            async with transport.stream(get()) as stream:
                got = [piece async for piece in pieces(stream, size)]
            assert b"".join(got) == BODY
            assert {len(piece) for piece in got[:-1]} <= {size}
        assert server.accepted == 1


@pytest.mark.parametrize("length", [0, 1, 10_000, HEAD_SIZE - 100, HEAD_SIZE, HEAD_SIZE + 1, 2 * HEAD_SIZE])
@pytest.mark.parametrize("at_once", [True, False])
async def test_body_around_the_size_of_what_comes_with_the_head(
    secured: Tls | None, length: int, at_once: bool
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length
    sent = [head + BODY[:length]] if at_once else [head, *([BODY[:length]] if length else [])]
    async with listening(answering(*sent), secured) as server, opened(server, "thin", secured) as transport:
        for _ in range(3):
            assert await read(transport) == BODY[:length]
        assert server.accepted == 1


@pytest.mark.parametrize("step", [1, 2, 3, 5])
async def test_head_in_pieces_of_every_kind(step: int) -> None:
    answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 6\r\n\r\n\r\n\r\nok"
    sent = [answer[start : start + step] for start in range(0, len(answer), step)]
    async with serving(answering(*sent)) as server, opened(server) as transport:
        for _ in range(2):
            assert await read(transport, 4) == b"\r\n\r\nok"
        assert server.accepted == 1


@pytest.mark.parametrize("ending", ["close", "cut", "reset"])
@pytest.mark.parametrize("after", [0, 1, 999, 1000, 1001, 65_536, 200_000, len(BODY) - 1])
async def test_cut_after_so_many_bytes(kind: str, secured: Tls | None, after: int, ending: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD, *([BODY[:after]] if after else []))
        if ending == "cut":
            await asyncio.sleep(0.02)
            peer.cut()
        elif ending == "reset":
            await asyncio.sleep(0.02)
            await peer.reset()

    async with listening(script, secured) as server, opened(server, kind, secured) as transport:
        async with transport.stream(get()) as stream:
            got, broken = await until_broken(stream)
        await server.until(lambda it: it.open == 0)
    assert got == BODY[: len(got)]
    assert broken.read == len(got) % 1000
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


@pytest.mark.parametrize(
    ("framing", "wrap"),
    [
        pytest.param(b"Connection: close", lambda body: body, id="until-close"),
        pytest.param(
            b"Transfer-Encoding: chunked",
            lambda body: (
                b"".join(
                    b"%x\r\n%s\r\n" % (len(body[at : at + 7777]), body[at : at + 7777])
                    for at in range(0, len(body), 7777)
                )
                + b"0\r\n\r\n"
            ),
            id="chunked",
        ),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
async def test_body_without_a_length(
    secured: Tls | None, framing: bytes, wrap: Callable[[bytes], bytes], whole: bool
) -> None:
    """Without TLS nobody can tell where one that ends with the connection was cut: it is then whole."""
    sent = wrap(BODY)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % framing, sent if whole else sent[:-2000])
        if not whole:
            await asyncio.sleep(0.05)
            peer.cut()

    async with listening(script, secured) as server, opened(server, "thin", secured) as transport:
        if whole:
            assert await read(transport, 9999) == BODY
        elif framing.startswith(b"Transfer") or secured:
            with pytest.raises(ConnectionLostError):
                await read(transport, 9999)


async def test_more_than_was_said(kind: str) -> None:
    """What follows is no part of the body, and the connection is not used again."""
    async with serving(answering(OK + b"junk")) as server, opened(server, kind) as transport:
        if kind == "thin":
            assert await read(transport) == b"ok"
            assert await read(transport) == b"ok"
            assert server.accepted == 2


async def test_slow_reader_makes_the_server_wait(secured: Tls | None) -> None:
    size = 64 * 2**20
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


@pytest.mark.parametrize("left", [1, DRAINED - 1, DRAINED])
async def test_connection_is_kept_where_only_a_little_is_left_unread(secured: Tls | None, left: int) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1000 + left)
    async with (
        listening(answering(head, BODY[:1000], BODY[1000 : 1000 + left]), secured) as server,
        opened(server, "thin", secured) as transport,
    ):
        for _ in range(3):
            async with transport.stream(get()) as stream:
                assert await stream.readinto(memoryview(bytearray(1000))) == 1000
        assert await read(transport) == BODY[: 1000 + left]
        assert server.accepted == 1
        assert transport.statistics().peak == 1


async def test_connection_is_closed_where_the_little_that_is_left_does_not_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streaming, "_DRAIN_SECONDS", 0.05)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody")
        await peer.gone()

    async with serving(script) as server, opened(server) as transport:
        for number in (1, 2):
            async with transport.stream(get()) as stream:
                assert await stream.readinto(memoryview(bytearray(4))) == 4
            await server.until(lambda it, number=number: it.accepted == number and it.open == 0)  # type: ignore[misc]


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


async def test_dripping_body_read_byte_by_byte_ends_with_a_timeout_too(kind: str) -> None:
    fields: dict[str, Any] = {"read_timeout": 30, "least_rate": 10_000, "slow_seconds": 0.3}
    async with serving(drops) as server, opened(server, kind, **fields) as transport:
        with pytest.raises(TransportTimeoutError):
            await asyncio.wait_for(read(transport, 1), 10)


async def test_time_in_which_nobody_reads_is_not_the_servers(kind: str) -> None:
    """Neither the next byte's nor the least rate's."""
    fields: dict[str, Any] = {"read_timeout": 0.1, "least_rate": 100_000, "slow_seconds": 0.1}
    async with serving(answering(HEAD + BODY)) as server, opened(server, kind, **fields) as transport:
        async with transport.stream(get()) as stream:
            got = []
            async for piece in pieces(stream, 100_000):
                got.append(piece)
                await asyncio.sleep(0.25)
        assert b"".join(got) == BODY


@pytest.mark.parametrize(
    ("came", "keeps_up"),
    [
        ([(5.0, 50), (4.9, 0)], [True, True]),
        ([(10.0, 100)], [True]),
        ([(10.0, 99)], [False]),
        ([(5.0, 99), (5.0, 0)], [True, False]),
        ([(10.0, 1000), (10.0, 99)], [True, False]),
        ([(30.0, 299)], [False]),
    ],
)
def test_ten_bytes_a_second_over_ten_seconds(came: list[tuple[float, int]], keeps_up: list[bool]) -> None:
    rate = MinimumRate(10.0, 10.0)
    assert [rate.holds(seconds, size) for seconds, size in came] == keeps_up


@pytest.mark.parametrize("phase", ["head", "first byte", "middle"])
async def test_cancelled(secured: Tls | None, phase: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if phase != "head":
            await peer.send(HEAD, *([BODY[:100_000]] if phase == "middle" else []))
        await peer.gone()

    async with listening(script, secured) as server, opened(server, "thin", secured) as transport:
        task = asyncio.create_task(read(transport))
        await server.until(lambda it: len(it.requests) == 1)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.until(lambda it: it.open == 0)
        assert transport.statistics().open == 0
        server.script = answering(OK)
        assert await read(transport) == b"ok"


async def test_cancelled_reader_that_reads_on_is_told() -> None:
    async with (
        serving(answering(HEAD + BODY[:9])) as server,
        opened(server) as transport,
        transport.stream(get()) as stream,
    ):
        buffer = memoryview(bytearray(99))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stream.readinto(buffer), 0.05)
        with pytest.raises(ConnectionLostError):
            await stream.readinto(buffer)


async def test_cancelled_at_the_moment_when_the_head_has_come() -> None:
    async with serving(answering(HEAD + BODY)) as server, opened(server) as transport:
        for turns in range(40):
            task = asyncio.create_task(read(transport))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 10)
        assert await asyncio.wait_for(read(transport), 10) == BODY
        assert (transport.statistics().in_use, transport.statistics().waiting) == (0, 0)
        await server.until(lambda it: it.open <= 1)


async def test_transport_is_closed_in_mid_body() -> None:
    async with (
        serving(answering(HEAD + BODY[:9])) as server,
        opened(server) as transport,
        transport.stream(get()) as stream,
    ):
        task = asyncio.create_task(stream.readinto(memoryview(bytearray(99))))
        await asyncio.sleep(0.02)
        await transport.close()
        with pytest.raises(ConnectionLostError) as caught:
            await task
        assert caught.value.read == 9


def going_wrong(chance: random.Random) -> Script:
    """Answers with the object that the target numbers, and goes wrong now and then."""

    async def script(peer: Peer) -> None:
        while True:
            number = int((await peer.request()).split(b" ")[1][1:])
            body = object_of(number)
            answer = b"HTTP/1.1 200 OK\r\nX: %d\r\nContent-Length: %d\r\n\r\n%s" % (number, len(body), body)
            cut, luck = chance.randrange(len(answer)), chance.random()
            if luck < 0.15:
                await peer.send(answer[:cut])
                if luck < 0.05:
                    peer.cut()
                return
            await peer.send(*([answer[:cut], answer[cut:]] if luck < 0.6 else [answer]))

    return script


def object_of(number: int) -> bytes:
    return BODY[number : number + number * 97]


async def read_some(transport: StreamingTransport, number: int, size: int, *, leave: bool) -> bool:
    """Whether all of the object came; every byte that comes is its own."""
    wanted, got = object_of(number), bytearray()
    try:
        async with transport.stream(get(f"/{number}")) as stream:
            assert stream.headers[b"x"] == b"%d" % number
            async for piece in pieces(stream, size):
                got += piece
                assert wanted.startswith(got)
                if leave:
                    return False
    except TransportError:
        return False
    return got == wanted


@pytest.mark.parametrize("seed", range(3))
async def test_everything_at_once(secured: Tls | None, seed: int) -> None:
    """Many bodies, some cancelled, some cut, some left: each byte that a reader has is its own object's."""
    chance = random.Random(seed)
    whole = 0
    async with (
        listening(going_wrong(chance), secured) as server,
        opened(server, "thin", secured, connections=5) as transport,
    ):
        for batch in range(12):
            tasks = [
                asyncio.create_task(read_some(transport, number, size, leave=chance.random() < 0.2))
                for number in range(1 + batch * 75, 76 + batch * 75, 5)
                for size in [chance.choice((100, 9999, 70_000))]
            ]
            for task in chance.sample(tasks, 4):
                for _ in range(chance.randrange(12)):
                    await asyncio.sleep(0)
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(result, (bool, asyncio.CancelledError))
                whole += result is True
        async with asyncio.timeout(5):
            while transport.statistics().in_use:  # noqa: ASYNC110 - what was left unread is drained behind the scenes
                await asyncio.sleep(0.01)
        assert transport.statistics().waiting == 0
        assert transport.statistics().peak <= 5
    assert whole > 40
    await server.until(lambda it: it.open == 0)
