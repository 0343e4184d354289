"""Many requests at once, some cancelled, to a server with every fault: each request gets its own answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from auditor.s3.http.base import Request, Transport, TransportError
from auditor.s3.http.transport import HttpTransport
from tests.s3.http.conftest import Opening, get, head
from tests.s3.http.raw_server import Peer, serving


def echo(chance: random.Random) -> Callable[[Peer], Awaitable[None]]:
    """Answers with the request's own target, and goes wrong now and then in every way."""

    async def script(peer: Peer) -> None:
        while True:
            line = (await peer.request()).split(b" ")
            body = b"" if line[0] == b"HEAD" else line[1]
            answer = b"HTTP/1.1 200 OK\r\nX-Target: %s\r\nContent-Length: %d\r\n\r\n%s" % (line[1], len(line[1]), body)
            cut = chance.randrange(len(answer))
            luck = chance.random()
            if luck < 0.05:
                return
            if luck < 0.10:
                await peer.send(answer[:cut])
                return
            if luck < 0.15:
                await peer.reset()
                return
            if luck < 0.20:
                await peer.send(answer + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
            elif luck < 0.6:
                await peer.send(answer[:cut], answer[cut:])
            else:
                await peer.send(answer)

    return script


async def test_everything_at_once(opening: Opening) -> None:
    chance = random.Random(1)
    answered = 0

    async def asked(transport: Transport, number: int) -> None:
        nonlocal answered
        request: Request = (head if number % 3 == 0 else get)(f"/{number}")
        try:
            answer = await transport.send(request)
        except TransportError:
            return
        answered += 1
        assert answer.headers[b"x-target"] == request.target.encode()
        assert answer.body == (b"" if request.method == "HEAD" else request.target.encode())

    async with serving(echo(chance)) as server, opening(server, connections=5) as transport:
        for batch in range(20):
            tasks = [asyncio.create_task(asked(transport, batch * 15 + n)) for n in range(15)]
            for task in chance.sample(tasks, 4):
                for _ in range(chance.randrange(12)):
                    await asyncio.sleep(0)
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                assert result is None or isinstance(result, asyncio.CancelledError)
        if isinstance(transport, HttpTransport):
            statistics = transport.statistics()
            assert (statistics.in_use, statistics.waiting) == (0, 0)
            assert statistics.peak <= 5
        await server.until(lambda it: it.open <= 5)
    assert answered > 100
    await server.until(lambda it: it.open == 0)
