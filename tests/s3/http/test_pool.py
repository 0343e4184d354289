"""The connections of our transport: their number, their order, the queue, and the end."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from auditor.s3.http.base import ConnectionLostError, TransportTimeoutError
from tests.s3.http.conftest import STREAMS, TRANSPORTS, Opening, get, opener
from tests.s3.http.raw_server import OK, Peer, RawServer, answering, serving


async def test_connecting_takes_too_long(opening: Opening) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        raw = RawServer(answering(OK))
        raw.port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", raw.port)):
            async with opening(raw, connections=1, connect_timeout=0.1) as transport:
                results = await asyncio.gather(*(transport.send(get()) for _ in range(2)), return_exceptions=True)
    assert [type(result) for result in results] == [ConnectionLostError] * 2


async def test_kept_connection_falls_silent_after_its_timer_was_set(thin: Opening) -> None:
    async def script(peer: Peer) -> None:
        for _ in range(3):
            await peer.request()
            await peer.send(OK)
        await peer.request()
        await peer.gone()

    async with serving(script) as server, thin(server, read_timeout=0.15) as transport:
        for _ in range(3):
            await transport.send(get())
            await asyncio.sleep(0.1)
        with pytest.raises(TransportTimeoutError):
            await transport.send(get())
        assert transport.statistics().open == 0
        assert server.accepted == 1


async def test_closed_while_requests_are_under_way_and_waiting(thin: Opening) -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async with serving(silent) as server, thin(server, connections=2) as transport:
        tasks = [asyncio.create_task(transport.send(get())) for _ in range(5)]
        await server.until(lambda it: len(it.requests) == 2)
        await transport.close()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results] == [ConnectionLostError] * 5
        assert transport.statistics().open == 0
        await server.until(lambda it: it.open == 0)


@pytest.mark.parametrize("kinds", [TRANSPORTS, STREAMS])
async def test_proxy_is_refused(kinds: Any) -> None:
    with pytest.raises(ValueError, match="proxy"):
        async with opener("thin", kinds)(RawServer(answering(OK)), proxy="http://proxy.test:3128"):
            pass
