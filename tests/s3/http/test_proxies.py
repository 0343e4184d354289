"""aiohttp's transport through a proxy, and its largest body."""

from __future__ import annotations

from auditor.s3.http.base import ConnectionLostError
from tests.s3.http.certificates import Tls
from tests.s3.http.conftest import get, opener, outcome
from tests.s3.http.raw_server import OK, Peer, RawServer, answering, once, serving

aiohttp = opener("aiohttp")


async def test_plain_request_through_a_proxy() -> None:
    async with serving(answering(OK)) as proxy, aiohttp(proxy, host="bucket.test", port=8080, proxy=url(proxy)) as it:
        assert (await it.send(get("/a%2Fb?c=d"))).body == b"ok"
        assert (await it.send(get("/a%2Fb?c=d"))).body == b"ok"
    assert proxy.requests[0].startswith(b"GET http://bucket.test:8080/a%2Fb?c=d HTTP/1.1\r\nHost: bucket.test\r\n")
    assert proxy.accepted == 1


async def test_tls_through_a_proxy(tls: Tls) -> None:
    async with serving(answering(OK), tls.server) as server:

        async def script(peer: Peer) -> None:
            await peer.request()
            await peer.join(server.port)

        fields = {"host": "localhost", "port": server.port, "tls": tls.client}
        async with serving(script) as proxy, aiohttp(server, proxy=url(proxy, "me:secret@"), **fields) as transport:
            for _ in range(2):
                assert (await transport.send(get("/a%2Fb"))).body == b"ok"
    assert proxy.requests[0].startswith(b"CONNECT localhost:%d HTTP/1.1\r\n" % server.port)
    assert b"\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n" in proxy.requests[0]
    assert len(proxy.requests) == 1
    assert server.requests == [b"GET /a%2Fb HTTP/1.1\r\nHost: bucket.test\r\n\r\n"] * 2


FAILING = {
    "refuses": answering(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"),
    "finds no way": answering(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
    "closes the tunnel": once(b"HTTP/1.1 200 Connection established\r\n\r\n"),
    "closes at once": once(),
}


async def test_proxy_fails(tls: Tls) -> None:
    fields = {"host": "localhost", "port": 443, "tls": tls.client}
    failures = []
    for name, script in FAILING.items():
        async with serving(script) as proxy, aiohttp(proxy, proxy=url(proxy), **fields) as transport:
            if await outcome(transport.send(get())) is not ConnectionLostError:
                failures.append(name)
    assert not failures, failures


def url(proxy: RawServer, user: str = "") -> str:
    return f"http://{user}127.0.0.1:{proxy.port}"
