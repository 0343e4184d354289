"""Cancelled in each phase: no connection and no future is left behind, and no request gets another's answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from auditor.s3.http.base import Response, Server
from auditor.s3.http.connection import BufferedConnection
from auditor.s3.http.pool import Pool
from auditor.s3.http.transport import HttpTransport
from tests.s3.http.certificates import Tls
from tests.s3.http.conftest import Opening, get
from tests.s3.http.raw_server import OK, Peer, RawServer, answering, breath, serving


async def cancelled(task: asyncio.Task[Response]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def held(*pieces: bytes) -> Callable[[Peer], Awaitable[None]]:
    """The first request gets these pieces and no more; all others are answered."""

    async def script(peer: Peer) -> None:
        if len(peer.server.requests) > 0:
            await answering(OK)(peer)
        await peer.request()
        await peer.send(*pieces)
        await peer.gone()

    return script


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((), id="waiting-for-head"),
        pytest.param((b"HTTP/1.1 200 OK\r\nContent-",), id="in-head"),
        pytest.param((b"HTTP/1.1 100 Continue\r\n\r\n",), id="after-interim"),
        pytest.param((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",), id="before-body"),
        pytest.param((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"body"), id="in-body"),
        pytest.param((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"9\r\nb"), id="in-chunk"),
    ],
)
async def test_cancelled_while_the_answer_comes(opening: Opening, pieces: tuple[bytes, ...]) -> None:
    async with serving(held(*pieces)) as server, opening(server, connections=1) as transport:
        task = asyncio.create_task(transport.send(get("/held")))
        await server.until(lambda it: len(it.requests) == 1)
        await breath()
        await cancelled(task)
        await server.until(lambda it: it.open == 0)
        assert (await transport.send(get("/next"))).body == b"ok"
        assert server.accepted == 2


async def test_cancelled_while_the_request_is_written(opening: Opening) -> None:
    async with serving(answering(OK)) as server, opening(server, connections=1) as transport:
        await transport.send(get())
        task = asyncio.create_task(transport.send(get("/written")))
        await asyncio.sleep(0)
        await cancelled(task)
        await server.until(lambda it: it.open == 0)
        assert (await transport.send(get())).body == b"ok"


async def test_cancelled_before_it_began(opening: Opening) -> None:
    async with serving(answering(OK)) as server, opening(server, connections=1) as transport:
        await cancelled(asyncio.create_task(transport.send(get())))
        assert server.accepted == 0
        assert (await transport.send(get())).body == b"ok"


async def test_cancelled_while_waiting_for_a_connection(opening: Opening) -> None:
    async with serving(held()) as server, opening(server, connections=1) as transport:
        first = asyncio.create_task(transport.send(get("/held")))
        await server.until(lambda it: len(it.requests) == 1)
        waiting = [asyncio.create_task(transport.send(get(f"/{n}"))) for n in range(5)]
        await breath()
        for task in (waiting[0], waiting[2], waiting[4]):
            await cancelled(task)
        if isinstance(transport, HttpTransport):
            assert transport.statistics().waiting == 2
        await cancelled(first)
        assert [(await waiting[n]).body for n in (1, 3)] == [b"ok", b"ok"]
    assert [line.split(b" ")[1] for line in server.requests] == [b"/held", b"/1", b"/3"]


async def test_cancelled_while_connecting(opening: Opening) -> None:
    with socket.socket() as listening:
        # A queue of one that is full: the next connection is not made, and not refused either.
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            raw = RawServer(answering(OK))
            raw.port = port
            async with opening(raw, connections=1) as transport:
                tasks = [asyncio.create_task(transport.send(get())) for _ in range(2)]
                await asyncio.sleep(0.05)
                for task in tasks:
                    await cancelled(task)
                if isinstance(transport, HttpTransport):
                    assert (transport.statistics().open, transport.statistics().waiting) == (0, 0)


async def test_cancelled_in_the_tls_handshake(opening: Opening, tls: Tls) -> None:
    async def silent(peer: Peer) -> None:
        await peer.gone()

    async with serving(silent) as server, opening(server, connections=1, tls=tls.client) as transport:
        for _ in range(2):
            task = asyncio.create_task(transport.send(get()))
            await server.until(lambda it: it.open == 1)
            await breath()
            await cancelled(task)
            await server.until(lambda it: it.open == 0)


async def test_cancelled_while_tls_answer_comes(opening: Opening, tls: Tls) -> None:
    fields = {"connections": 1, "tls": tls.client}
    async with serving(held(OK[:-1]), tls.server) as server, opening(server, **fields) as transport:
        task = asyncio.create_task(transport.send(get("/held")))
        await server.until(lambda it: len(it.requests) == 1)
        await breath()
        await cancelled(task)
        await server.until(lambda it: it.open == 0)
        assert (await transport.send(get("/next"))).body == b"ok"


class Wire(asyncio.Transport):
    """Takes what is written, and can be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.aborted = True


def connected(pool: Pool[BufferedConnection]) -> tuple[BufferedConnection, Wire]:
    """A connection in a place of this pool, on a wire without a network."""
    connection, wire = pool._new(), Wire()
    assert connection is not None
    connection.connection_made(wire)
    connection.ready()
    return connection, wire


def fed(connection: BufferedConnection, data: bytes) -> None:
    """Deliver bytes, as the loop does."""
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


def one() -> Pool[BufferedConnection]:
    return Pool(Server(host="nowhere.test", port=1, connections=1), BufferedConnection)


async def test_cancelled_at_the_moment_of_its_turn() -> None:
    pool = one()
    connection, _ = connected(pool)
    waiting = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    pool.freed(connection)
    assert pool.statistics().idle == 0
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert pool.take_idle() is connection


async def test_cancelled_at_the_moment_of_its_turn_with_another_behind() -> None:
    pool = one()
    connection, _ = connected(pool)
    first, second = asyncio.create_task(pool.take()), asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    pool.freed(connection)
    first.cancel()
    assert await second is connection
    assert first.cancelled()


async def test_cancelled_at_the_moment_a_place_becomes_free() -> None:
    pool = one()
    connection, _ = connected(pool)
    waiting = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    connection.close()
    assert pool.statistics().open == 1
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert pool.statistics().open == 0


async def test_cancelled_at_the_moment_of_the_answer() -> None:
    pool = one()
    connection, wire = connected(pool)
    future = connection.begin(b"GET / HTTP/1.1\r\n\r\n", head_only=False)
    fed(connection, OK)
    connection.abandon(future)
    assert not wire.aborted
    assert pool.take_idle() is connection
    connection.close()


async def test_answer_at_the_moment_of_cancellation() -> None:
    pool = one()
    connection, wire = connected(pool)
    future = connection.begin(b"GET / HTTP/1.1\r\n\r\n", head_only=False)
    future.cancel()
    fed(connection, OK)
    connection.abandon(future)
    assert not wire.aborted
    connection.close()


async def test_half_an_answer_at_the_moment_of_cancellation() -> None:
    pool = one()
    connection, wire = connected(pool)
    future = connection.begin(b"GET / HTTP/1.1\r\n\r\n", head_only=False)
    future.cancel()
    fed(connection, OK[:9])
    connection.abandon(future)
    assert wire.aborted
    assert pool.statistics().open == 0


async def test_lost_at_the_moment_of_its_turn() -> None:
    pool = one()
    connection, _ = connected(pool)
    first = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    pool.freed(connection)
    connection.connection_lost(None)
    replacement, _ = connected(pool)
    await asyncio.sleep(0)
    pool.freed(replacement)
    assert await first is replacement
