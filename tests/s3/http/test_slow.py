"""Servers and proxies that never send a complete answer."""

from __future__ import annotations

import asyncio

import pytest

from auditor.s3.http.base import TransportTimeoutError
from tests.s3.http.conftest import Opening, get, outcome
from tests.s3.http.raw_server import OK, Peer, serving

DROPS = {
    "head": (b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
}


async def test_answer_comes_in_drops_and_never_ends(opening: Opening, name: str) -> None:
    cases = DROPS if name != "aiohttp" else {**DROPS, "interim": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n")}

    async def script(peer: Peer) -> None:
        first, again = cases[await peer.name()]
        await peer.send(first)
        while True:
            await peer.send(again)
            await asyncio.sleep(0.02)

    async with serving(script) as server, opening(server, read_timeout=30, answer_timeout=0.2) as transport:
        found = {case: await asyncio.wait_for(outcome(transport.send(get(f"/{case}"))), 10) for case in cases}
        assert found == dict.fromkeys(cases, TransportTimeoutError)
        await server.until(lambda it: it.open == 0)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx-amz-request-id: 0123456789\r\n\r\n"


async def dripping(peer: Peer) -> None:
    """Answer whole in the end, after some seconds in which no pause between two bytes is long."""
    await peer.request()
    for at in range(len(HEAD)):
        await peer.send(HEAD[at : at + 1])
        await asyncio.sleep(0.04)
    await peer.send(b"ok")


async def test_head_that_drips_is_not_waited_for(opening: Opening, name: str) -> None:
    said = None if name == "aiohttp" else r"the head was not complete 0\.5 seconds after it began"
    async with serving(dripping) as server, opening(server, read_timeout=0.5, head_timeout=0.5) as transport:
        with pytest.raises(TransportTimeoutError, match=said):
            await transport.send(get())
        await server.until(lambda it: it.open == 0)


async def test_wait_for_a_place_is_not_of_the_answers_time(opening: Opening) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await asyncio.sleep(0.05)
            await peer.send(OK)

    async with serving(script) as server, opening(server, connections=1, answer_timeout=0.7) as transport:
        answers = await asyncio.gather(*(transport.send(get(f"/{n}")) for n in range(16)))
        assert [answer.body for answer in answers] == [b"ok"] * 16


async def test_first_answer_has_a_limit_of_its_own_and_later_ones_do_not(thin: Opening) -> None:
    async def script(peer: Peer) -> None:
        for number in range(3):
            await peer.request()
            await asyncio.sleep(0.3 if number else 0)
            await peer.send(OK[:9])
            await asyncio.sleep(0.3)
            await peer.send(OK[9:])

    async with serving(script) as server, thin(server, read_timeout=30, first_answer=0.2) as transport:
        answers = [await transport.send(get()) for _ in range(3)]
        assert [answer.body for answer in answers] == [b"ok"] * 3
