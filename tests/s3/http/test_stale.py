"""Idle connections that the server closed: which requests are sent again, and that they are counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from auditor.s3.http.base import ConnectionLostError
from tests.s3.http.conftest import Opening, get, outcome, resent
from tests.s3.http.raw_server import OK, Peer, answering, breath, once, serving


def ending(*, served: int, last: bytes = b"", reset: bool = False, connections: int = 1) -> Callable[[Peer], Any]:
    """The first connections answer so many requests, and to the next one send `last` and end; later ones go on."""

    async def script(peer: Peer) -> None:
        if peer.number > connections:
            await answering(OK)(peer)
        for _ in range(served):
            await peer.request()
            await peer.send(OK)
        await peer.request()
        if last:
            await peer.send(last)
        if reset:
            await peer.reset()

    return script


@pytest.mark.parametrize("reset", [False, True])
async def test_kept_connection_ends_before_the_answer(opening: Opening, reset: bool) -> None:
    async with serving(ending(served=1, reset=reset)) as server, opening(server) as transport:
        await transport.send(get("/1"))
        assert (await transport.send(get("/2"))).body == b"ok"
        assert (await transport.send(get("/3"))).body == b"ok"
        assert resent(transport) == 1
        assert [line.split(b" ")[1] for line in server.requests] == [b"/1", b"/2", b"/2", b"/3"]
        assert server.accepted == 2


async def test_kept_connection_ends_in_the_answer(opening: Opening, name: str) -> None:
    for last in (b"H", b"HTTP/1.1 200 OK\r\n", OK[:-1], b"HTTP/1.1 100 Continue\r\n\r\n"):
        if name == "aiohttp" and b"100" in last:
            continue
        async with serving(ending(served=1, last=last)) as server, opening(server) as transport:
            await transport.send(get())
            assert await outcome(transport.send(get())) is ConnectionLostError, last
            assert resent(transport) == 0
            assert len(server.requests) == 2


async def test_request_is_sent_again_once(opening: Opening) -> None:
    async with serving(ending(served=1)) as server, opening(server) as transport:
        await transport.send(get("/1"))
        server.script = ending(served=0, connections=9)
        with pytest.raises(ConnectionLostError):
            await transport.send(get("/2"))
        assert resent(transport) == 1
        assert len(server.requests) == 3


async def test_idle_connection_that_the_server_closes_is_dropped_at_once(thin: Opening) -> None:
    async with serving(once(OK)) as server, thin(server) as transport:
        await transport.send(get())
        await server.until(lambda it: it.open == 0)
        await breath()
        assert transport.statistics().open == 0
        await transport.send(get())
        assert resent(transport) == 0


async def test_bytes_on_an_idle_connection_answer_nothing(thin: Opening) -> None:
    for unasked in (b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", OK, b"\r\n", b"\0"):
        async with serving(once(OK, unasked)) as server, thin(server) as transport:
            await transport.send(get())
            await server.until(lambda it: it.open == 0)
            assert transport.statistics().open == 0
            assert (await transport.send(get())).body == b"ok"
            assert server.accepted == 2


async def test_connection_idle_for_too_long_is_not_used(thin: Opening) -> None:
    async with serving(answering(OK)) as server, thin(server, idle_seconds=0.05) as transport:
        await asyncio.gather(*(transport.send(get()) for _ in range(3)))
        assert transport.statistics().idle == 3
        await asyncio.sleep(0.1)
        await transport.send(get())
        statistics = transport.statistics()
        assert (statistics.open, statistics.opened, statistics.resent) == (1, 4, 0)
