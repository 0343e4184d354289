"""The transport for threads: whole answers, streams, files that are sent, and connections that end too soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from auditor.s3.http.base import (
    BrokenAnswerError,
    ConnectionLostError,
    Request,
    Response,
    Server,
    TransportTimeoutError,
)
from auditor.s3.http.blocking import BlockingTransport
from tests.s3.http.certificates import Tls
from tests.s3.http.conftest import get
from tests.s3.http.raw_server import OK, Peer, RawServer, answering, by_name, once, serving

CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end"


def put(length: int) -> Request:
    return Request("PUT", "/bucket/key", (("Host", "bucket.test"), ("content-length", str(length))))


@asynccontextmanager
async def opened(raw: RawServer, **fields: Any) -> AsyncIterator[BlockingTransport]:
    transport = BlockingTransport(Server(**{"host": "127.0.0.1", "port": raw.port, **fields}))
    try:
        yield transport
    finally:
        transport.close()


async def sent_by(transport: BlockingTransport, request: Request) -> Response:
    return await asyncio.to_thread(transport.send, request)


ANSWERS = {
    "length": (OK, b"ok"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "404": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n<xml", b"<xml"),
    "100": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
    "chunked": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n", b"ok!"),
    "until-the-end": (LAST, b"until the end"),
}


async def test_answers_whole_and_byte_by_byte() -> None:
    sent: dict[str, tuple[bytes, ...]] = {name: (answer,) for name, (answer, _) in ANSWERS.items()}
    sent |= {
        f"{name}/drops": (*(answer[at : at + 1] for at in range(len(answer))),) for name, (answer, _) in ANSWERS.items()
    }
    async with serving(by_name(sent, closes=True)) as server, opened(server) as transport:
        for name in sent:
            assert (await sent_by(transport, get(f"/{name}"))).body == ANSWERS[name.partition("/")[0]][1], name


@pytest.mark.parametrize(("idle_seconds", "connections"), [(60.0, 1), (0.0, 3)])
async def test_connection_is_kept_until_it_was_idle_for_long(idle_seconds: float, connections: int) -> None:
    async with serving(answering(OK)) as server, opened(server, idle_seconds=idle_seconds) as transport:
        for _ in range(3):
            assert (await sent_by(transport, get())).body == b"ok"
        assert server.accepted == connections


async def test_used_connection_that_ends_is_replaced_and_the_request_sent_again(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        if peer.number == 1:
            await peer.request()  # and no answer
            return
        await peer.gone()

    (tmp_path / "file").write_bytes(b"content")
    async with serving(script) as server, opened(server) as transport:
        await sent_by(transport, get())
        with (tmp_path / "file").open("rb") as file:
            answer = await asyncio.to_thread(transport.send, put(7), file)
        assert (answer.body, server.accepted, len(server.requests)) == (b"ok", 2, 3)


async def test_answer_that_does_not_come_whole_or_is_none() -> None:
    lost = (b"", CUT, b"HTTP/1.1 2")
    for part, error in [*((part, ConnectionLostError) for part in lost), (b"220 mail ESMTP\r\n", BrokenAnswerError)]:
        async with serving(once(part)) as server, opened(server) as transport:
            with pytest.raises(error):
                await sent_by(transport, get())
            assert server.accepted == 1


async def test_head_that_drips_is_not_waited_for() -> None:
    async def dripping(peer: Peer) -> None:
        await peer.request()
        for at in range(len(OK)):
            await peer.send(OK[at : at + 1])
            await asyncio.sleep(0.04)

    async with serving(dripping) as server, opened(server, head_timeout=0.5) as transport:
        with pytest.raises(TransportTimeoutError, match="the head was not complete"):
            await sent_by(transport, get())


async def test_body_past_the_limit() -> None:
    async with serving(answering(OK)) as server, opened(server, largest_body=1) as transport:
        with pytest.raises(BrokenAnswerError, match="larger"):
            await sent_by(transport, get())


async def test_stream_is_read_in_pieces_and_its_connection_kept() -> None:
    body = bytes(range(256)) * 4096
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with serving(answering(answer)) as server, opened(server) as transport:
        for _ in range(2):
            found = await asyncio.to_thread(transport.stream, get())
            assert not isinstance(found, Response)
            assert await asyncio.to_thread(b"".join, found) == body
        assert server.accepted == 1


async def test_stream_that_is_refused_or_cut() -> None:
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
    async with serving(once(refusal)) as server, opened(server) as transport:
        found = await asyncio.to_thread(transport.stream, get())
        assert isinstance(found, Response)
        assert (found.status, found.body) == (403, b"no")
    async with serving(once(CUT)) as server, opened(server) as transport:
        found = await asyncio.to_thread(transport.stream, get())
        assert not isinstance(found, Response)
        with pytest.raises(ConnectionLostError):
            await asyncio.to_thread(list, found)


async def test_refusal_that_comes_before_the_whole_request_was_sent(tmp_path: Path) -> None:
    async def refuse(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")

    (tmp_path / "file").write_bytes(bytes(32 * 1024 * 1024))
    async with serving(refuse) as server, opened(server) as transport:
        with (tmp_path / "file").open("rb") as file, suppress(ConnectionLostError):  # a reset may be faster
            answer = await asyncio.to_thread(transport.send, put(1 << 25), file)
            assert (answer.status, answer.body) == (403, b"no")
        assert len(server.requests) == 1


@pytest.mark.parametrize("farewell", [True, False])
async def test_only_the_server_can_end_a_body_without_a_length(tls: Tls, farewell: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(LAST)
        if not farewell:
            peer.cut()

    async with serving(script, tls.server) as server, opened(server, host="localhost", tls=tls.client) as transport:
        if farewell:
            assert (await sent_by(transport, get())).body == b"until the end"
        else:
            with pytest.raises(ConnectionLostError):
                await sent_by(transport, get())
