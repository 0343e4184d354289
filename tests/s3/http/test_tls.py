"""TLS: the certificate is verified, the server's name is sent, and a forged end of the connection ends no answer."""

from __future__ import annotations

import asyncio

import pytest

from auditor.s3.http.base import ConnectionLostError
from tests.s3.http.certificates import Tls, made
from tests.s3.http.conftest import Opening, get, head, outcome
from tests.s3.http.raw_server import OK, Peer, answering, by_name, serving


async def test_answers_over_tls(opening: Opening, tls: Tls) -> None:
    body = bytes(range(256)) * 8192
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    pieces = {"small": (OK,), "large": (answer,)}
    async with serving(by_name(pieces), tls.server) as server, opening(server, tls=tls.client) as transport:
        for name, wanted in (("small", b"ok"), ("large", body)) * 2:
            assert (await transport.send(get(f"/{name}"))).body == wanted
        assert server.accepted == 1


async def test_name_is_sent_and_verified(opening: Opening, tls: Tls) -> None:
    names: list[str | None] = []
    tls.server.sni_callback = lambda _, name, __: names.append(name)
    try:
        fields = {"host": "localhost", "tls": tls.client}
        async with serving(answering(OK), tls.server) as server, opening(server, **fields) as transport:
            await transport.send(get())
    finally:
        tls.server.sni_callback = None
    assert names == ["localhost"]


async def test_certificate_of_another_host(
    opening: Opening, tls: Tls, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = made(tmp_path_factory.mktemp("other"), "other.test")
    async with serving(answering(OK), other.server) as server:
        async with opening(server, tls=other.client) as transport:
            with pytest.raises(ConnectionLostError, match="verify failed"):
                await transport.send(get())
        async with opening(server, tls=tls.client) as transport:
            with pytest.raises(ConnectionLostError, match="verify failed"):
                await transport.send(get())
    assert server.requests == []


async def test_server_without_a_handshake(opening: Opening, tls: Tls) -> None:
    """It speaks HTTP at once, says nothing, or ends in the middle of the handshake."""
    for sent, stays in ((OK, True), (b"", True), (b"\x16", False)):

        async def script(peer: Peer, sent: bytes = sent, stays: bool = stays) -> None:
            await peer.send(*filter(None, [sent]))
            if stays:
                await peer.gone()

        async with serving(script) as server, opening(server, tls=tls.client, connect_timeout=0.1) as transport:
            assert await outcome(transport.send(get())) is ConnectionLostError, sent
            await server.until(lambda it: it.open == 0)


async def test_body_without_length_is_cut_without_a_farewell(thin: Opening, tls: Tls) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nto the")
        await asyncio.sleep(0.01)
        peer.cut()

    async with serving(script, tls.server) as server, thin(server, tls=tls.client) as transport:
        with pytest.raises(ConnectionLostError):
            await transport.send(get())


async def test_two_records_after_a_head_in_one_go(thin: Opening, tls: Tls) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        # Each write is a record of its own; they leave in one segment, as nothing is awaited between.
        peer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        peer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await peer.gone()

    async with serving(script, tls.server) as server, thin(server, tls=tls.client) as transport:
        for _ in range(2):
            assert (await transport.send(head())).headers == {b"content-length": b"5"}
        assert server.accepted == 2
