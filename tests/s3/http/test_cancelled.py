"""Cancelled in each phase: no connection and no future is left behind, and no request gets another's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from auditor.s3.http.base import Response
from auditor.s3.http.pool import HttpTransport
from tests.s3.http.certificates import Tls
from tests.s3.http.conftest import Opening, get
from tests.s3.http.raw_server import OK, Peer, breath, serving


async def cancelled(task: asyncio.Task[Response]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def held(*pieces: bytes) -> Callable[[Peer], Awaitable[None]]:
    """A request for /held gets these pieces and no more; all others are answered."""

    async def script(peer: Peer) -> None:
        while b" /held " not in await peer.request():
            await peer.send(OK)
        await peer.send(*pieces)
        await peer.gone()

    return script


PHASES = {
    "waiting for the head": (),
    "in the head": (b"HTTP/1.1 200 OK\r\nContent-",),
    "after an interim answer": (b"HTTP/1.1 100 Continue\r\n\r\n",),
    "before the body": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",),
    "in the body": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"body"),
    "in a chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"9\r\nb"),
}


@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])
async def test_cancelled_while_the_answer_comes(opening: Opening, tls: Tls, secured: bool) -> None:
    context = tls.server if secured else None
    for phase, pieces in PHASES.items():
        async with (
            serving(held(*pieces), context) as server,
            opening(server, connections=1, tls=tls.client if secured else None) as transport,
        ):
            task = asyncio.create_task(transport.send(get("/held")))
            await server.until(lambda it: len(it.requests) == 1)
            await breath()
            await cancelled(task)
            await server.until(lambda it: it.open == 0)
            assert (await transport.send(get("/next"))).body == b"ok", phase
            assert server.accepted == 2, phase


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


@pytest.mark.parametrize("closes", [False, True])
async def test_cancelled_at_any_moment_the_others_get_their_answers(own: Opening, closes: bool) -> None:
    """One connection, three requests, of which one is cancelled some turns of the loop later: on its turn, too."""

    async def script(peer: Peer) -> None:
        while True:
            target = (await peer.request()).split(b" ")[1]
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(target), target))
            if closes:
                return

    async with serving(script) as server, own(server, connections=1) as transport:
        for victim in range(3):
            for turns in range(45):
                tasks = [asyncio.create_task(transport.send(get(f"/{victim}/{n}"))) for n in range(3)]
                for _ in range(turns):
                    await asyncio.sleep(0)
                tasks[victim].cancel()
                async with asyncio.timeout(10):
                    found = await asyncio.gather(*tasks, return_exceptions=True)
                for number, answer in enumerate(found):
                    if number != victim or not isinstance(answer, asyncio.CancelledError):
                        assert isinstance(answer, Response)
                        assert answer.body == f"/{victim}/{number}".encode(), (victim, turns)
        async with asyncio.timeout(10):
            while transport.statistics().in_use:  # noqa: ASYNC110 - the rest of a body is drained behind the scenes
                await asyncio.sleep(0.01)
        assert transport.statistics().waiting == 0
        assert transport.statistics().peak == 1
