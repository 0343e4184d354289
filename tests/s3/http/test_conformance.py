"""The behaviour that both transports share."""

from __future__ import annotations

import asyncio

import pytest

from auditor.s3.http.base import (
    LARGEST_BODY,
    LARGEST_HEAD,
    MOST_HEADERS,
    BrokenAnswerError,
    ConnectionLostError,
    Request,
    TransportTimeoutError,
)
from tests.s3.http.conftest import Opening, get, head
from tests.s3.http.raw_server import OK, Peer, answering, once, serving


async def test_request_is_sent_byte_for_byte(opening: Opening) -> None:
    target = "/b//../%2e/a%2Fb+c%20d?list-type=2&prefix=%C3%A9&acl"
    async with serving(answering(OK)) as server, opening(server) as transport:
        await transport.send(get(target, ("x-amz-date", "now"), ("Authorization", "A b=c, d=e")))
    assert server.requests == [
        f"GET {target} HTTP/1.1\r\nHost: bucket.test\r\nx-amz-date: now\r\nAuthorization: A b=c, d=e\r\n\r\n".encode()
    ]


async def test_connection_is_kept_for_the_next_request(opening: Opening) -> None:
    async with serving(answering(OK)) as server, opening(server) as transport:
        for _ in range(5):
            assert (await transport.send(get())).body == b"ok"
        assert server.accepted == 1


async def test_headers_are_lower_case_and_joined(opening: Opening) -> None:
    answer = b"HTTP/1.1 200 Fine so\r\nX-A:  1 \t\r\nX-B:\r\nx-a: 2\r\nCONTENT-LENGTH: 0\r\n\r\n"
    async with serving(answering(answer)) as server, opening(server) as transport:
        got = await transport.send(get())
    assert (got.status, got.reason, got.body) == (200, "Fine so", b"")
    assert got.headers == {b"x-a": b"1, 2", b"x-b": b"", b"content-length": b"0"}


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        pytest.param(OK, b"ok", id="length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", id="empty"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2;name=value\r\nok\r\n01\r\n!\r\n0\r\nX-End: 1\r\n\r\n",
            b"ok!",
            id="chunked",
        ),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", b"", id="204"),
        pytest.param(b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\nContent-Length: 9\r\n\r\n', b"", id="304"),
        pytest.param(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n<xml", b"<xml", id="404"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok", id="100"),
        pytest.param(b"HTTP/1.1 103 Hints\r\nLink: a\r\n\r\nHTTP/1.1 102 P\r\n\r\n" + OK, b"ok", id="103-102"),
    ],
)
async def test_body_ends_where_the_head_says_and_the_connection_is_kept(
    opening: Opening, answer: bytes, body: bytes
) -> None:
    async with serving(answering(answer)) as server, opening(server) as transport:
        for _ in range(3):
            assert (await transport.send(get())).body == body
        assert server.accepted == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 434234\r\n\r\n", id="length"),
        pytest.param(b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n", id="chunked"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", id="empty"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (5 * 2**40), id="five-tib"),
    ],
)
async def test_head_has_no_body_and_keeps_the_connection(opening: Opening, answer: bytes) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.send(answer if (await peer.request()).startswith(b"HEAD") else OK)

    async with serving(script) as server, opening(server) as transport:
        for _ in range(2):
            assert (await transport.send(head())).body == b""
            assert (await transport.send(get())).body == b"ok"
        assert server.accepted == 1


async def test_body_without_length_ends_with_the_connection(opening: Opening) -> None:
    async with serving(once(b"HTTP/1.1 200 OK\r\n\r\n", b"to ", b"the end")) as server, opening(server) as transport:
        assert (await transport.send(get())).body == b"to the end"
        assert (await transport.send(get())).body == b"to the end"
        assert server.accepted == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nok", id="close"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: x, close\r\nContent-Length: 2\r\n\r\nok", id="among-others"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", id="http-1.0"),
        pytest.param(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", id="another-answer"),
    ],
)
async def test_connection_is_not_used_again(opening: Opening, answer: bytes) -> None:
    async with serving(answering(answer)) as server, opening(server) as transport:
        for _ in range(3):
            assert (await transport.send(get())).body == b"ok"
        assert server.accepted == 3


async def test_http_1_0_that_keeps_the_connection(opening: Opening) -> None:
    answer = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"
    async with serving(answering(answer)) as server, opening(server) as transport:
        await transport.send(get())
        await transport.send(get())
        assert server.accepted == 1


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 2", id="status-line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-", id="headers"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", id="interim"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", id="before-body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", id="chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", id="last-chunk"),
    ],
)
@pytest.mark.parametrize("ending", ["close", "reset"])
async def test_connection_ends_before_the_answer_does(opening: Opening, sent: bytes, ending: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if sent:
            await peer.send(sent)
        if ending == "reset":
            await peer.reset()

    async with serving(script) as server, opening(server) as transport:
        with pytest.raises(ConnectionLostError):
            await transport.send(get())
        assert server.accepted == len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"\x16\x03\x01\x00\x05hello, this is TLS\r\n\r\n", id="tls"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="ssh"),
        pytest.param(b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="version-2"),
        pytest.param(b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n", id="version-0.9"),
        pytest.param(b"HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="version-3"),
        pytest.param(b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", id="status-of-two-digits"),
        pytest.param(b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", id="status-of-four-digits"),
        pytest.param(b"HTTP/1.1 -20 OK\r\nContent-Length: 0\r\n\r\n", id="negative-status"),
        pytest.param(b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n", id="status-0"),
        pytest.param(b"HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n", id="status-999"),
        pytest.param(b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", id="101"),
        pytest.param(b"HTTP/1.1 101 S\r\n\r\n", id="101-to-nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", id="negative-length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx", id="length-with-plus"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx", id="list-of-lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", id="length-past-64-bits"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", id="two-lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", id="same-length-twice"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", id="chunk-size"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", id="chunk-overrun"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxyz", id="gzip-alone"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", id="gzip-chunked"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", id="header-without-colon"),
        pytest.param(b"HTTP/1.1 200 OK\r\n: x\r\n\r\n", id="header-without-name"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", id="nul-in-header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * (MOST_HEADERS + 1) + b"\r\n", id="too-many-headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * LARGEST_HEAD + b"\r\n\r\n", id="header-too-large"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2 * LARGEST_HEAD, id="header-without-end"),
    ],
)
async def test_answer_is_broken(opening: Opening, answer: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer)
        await peer.gone()

    async with serving(script) as server, opening(server, read_timeout=5, idle_seconds=0.1) as transport:
        with pytest.raises(BrokenAnswerError):
            await transport.send(get())
        await server.until(lambda it: it.open == 0)


async def test_body_is_said_to_be_past_the_limit(opening: Opening, name: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (LARGEST_BODY + 1))
        await peer.gone()

    if name == "streams":
        pytest.skip("it has no such limit")
    async with serving(script) as server, opening(server, read_timeout=5) as transport:
        with pytest.raises(BrokenAnswerError):
            await transport.send(get())
        await server.until(lambda it: it.open == 0)


async def test_body_grows_past_the_limit(opening: Opening) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n" % 2**20 + bytes(2**20) + b"\r\n"
        while True:
            await peer.send(chunk)

    async with serving(script) as server, opening(server) as transport:
        with pytest.raises(BrokenAnswerError):
            await transport.send(get())
        await server.until(lambda it: it.open == 0)


async def test_redirect_is_an_answer_and_not_followed(opening: Opening) -> None:
    answer = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(answer)) as server, opening(server) as transport:
        got = await transport.send(get())
    assert (got.status, got.headers[b"location"]) == (307, b"http://127.0.0.1:1/")


async def test_cookie_is_not_sent_back(opening: Opening) -> None:
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(answer)) as server, opening(server, host="localhost") as transport:
        await transport.send(get())
        await transport.send(get())
    assert server.requests[0] == server.requests[1]


async def test_compressed_body_is_left_as_it_is(opening: Opening) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody"
    async with serving(answering(answer)) as server, opening(server) as transport:
        assert (await transport.send(get())).body == b"body"


@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(get("/a\r\nX: y"), id="target-line-break"),
        pytest.param(get("/a\nX: y"), id="target-line-feed"),
        pytest.param(get("/a\0"), id="target-nul"),
        pytest.param(get("/a b"), id="target-blank"),
        pytest.param(get("/a#b"), id="target-fragment"),
        pytest.param(get("a"), id="target-relative"),
        pytest.param(get("/é"), id="target-not-ascii"),
        pytest.param(get("/", ("x", "y\r\nz: a")), id="header-line-break"),
        pytest.param(get("/", ("x", "y\rz")), id="header-carriage-return"),
        pytest.param(get("/", ("x", "y\0")), id="header-nul"),
        pytest.param(get("/", ("x\n", "y")), id="name-line-feed"),
    ],
)
async def test_request_that_would_be_another_is_refused(opening: Opening, request_of: Request) -> None:
    async with serving(answering(OK)) as server, opening(server) as transport:
        with pytest.raises(ValueError, match=r"request|ascii"):
            await transport.send(request_of)
        assert server.accepted == 0


async def test_nobody_listens(opening: Opening) -> None:
    async with serving(answering(OK)) as server:
        pass
    async with opening(server) as transport:
        with pytest.raises(ConnectionLostError):
            await transport.send(get())


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"])
async def test_server_falls_silent(opening: Opening, sent: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if sent:
            await peer.send(sent)
        await peer.gone()

    async with serving(script) as server, opening(server, read_timeout=0.1) as transport:
        with pytest.raises(TransportTimeoutError):
            await transport.send(get())
        await server.until(lambda it: it.open == 0)


async def test_slow_answer_that_keeps_coming_is_no_timeout(opening: Opening) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        for byte in OK:
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.05)

    async with serving(script) as server, opening(server, read_timeout=0.5) as transport:
        assert (await transport.send(get())).body == b"ok"


async def test_no_more_connections_than_asked_for(opening: Opening) -> None:
    async with serving(answering(OK)) as server, opening(server, connections=3) as transport:
        answers = await asyncio.gather(*(transport.send(get(f"/{n}")) for n in range(40)))
        assert [answer.body for answer in answers] == [b"ok"] * 40
        assert server.accepted == 3
    assert len(server.requests) == 40
