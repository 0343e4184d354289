"""The behaviour that all transports share: requests, connections, silence. test_answers has the forms of answers."""

from __future__ import annotations

import asyncio

import pytest

from auditor.s3.http.base import Request
from tests.s3.http.conftest import Opening, get
from tests.s3.http.raw_server import OK, answering, serving


async def test_request_is_sent_byte_for_byte(opening: Opening) -> None:
    target = "/b//../%2e/a%2Fb+c%20d?list-type=2&prefix=%C3%A9&acl"
    async with serving(answering(OK)) as server, opening(server) as transport:
        await transport.send(get(target, ("x-amz-date", "now"), ("Authorization", "A b=c, d=e")))
    assert server.requests == [
        f"GET {target} HTTP/1.1\r\nHost: bucket.test\r\nx-amz-date: now\r\nAuthorization: A b=c, d=e\r\n\r\n".encode()
    ]


REFUSED = {
    **{
        f"target {text!r}": get(text)
        for text in ("/a\r\nX: y", "/a\nX: y", "/a\0", "/a b", "/a#b", "a", "/é", "/\u2028")
    },
    **{f"value {text!r}": get("/", ("x", text)) for text in ("y\r\nz: a", "y\rz", "y\0", "é", "\n")},
    **{f"name {text!r}": get("/", (text, "y")) for text in ("x\n", "x\r", "x\0", "é")},
    **{
        f"shared {text!r}": Request("GET", "/", (("Host", text), ("x-amz-date", "d"), ("authorization", "a")))
        for text in ("h\rx", "h\nx", "h\0x", "hé")
    },
    **{
        f"method {method!r}": Request(method, "/", (("Host", "h"),))
        for method in ("PUT", "DELETE", "PATCH", "get", "", "GET /other HTTP/1.1\r\nX: ")
    },
}


async def test_request_that_would_be_another_is_refused_each_time(opening: Opening) -> None:
    async with serving(answering(OK)) as server, opening(server) as transport:
        for _, request in [*REFUSED.items()] * 2:
            with pytest.raises(ValueError, match=r"request|ascii"):
                await transport.send(request)
        assert server.accepted == 0


async def test_cookie_is_not_sent_back(opening: Opening) -> None:
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(answer)) as server, opening(server, host="localhost") as transport:
        await transport.send(get())
        await transport.send(get())
    assert server.requests[0] == server.requests[1]


async def test_no_more_connections_than_asked_for(opening: Opening) -> None:
    async with serving(answering(OK)) as server, opening(server, connections=3) as transport:
        answers = await asyncio.gather(*(transport.send(get(f"/{n}")) for n in range(40)))
        assert [answer.body for answer in answers] == [b"ok"] * 40
        assert server.accepted == 3
    assert len(server.requests) == 40
