"""A server that is not an S3 server, or speaks the other scheme, is named; and the server's own words on a refusal are
printed.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from auditor.errors import CallFailed
from auditor.s3.calls import RetryPolicy
from tests.cli.conftest import Run
from tests.s3.http.certificates import made
from tests.support.engine_names import OURS_FIRST
from tests.support.fakes.caller import FakeTime, make_caller
from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_calls import Call, Refused, Reply

AUDIT = ("audit", "s3://audited")
PAGE = Reply(200, {"Content-Type": "text/html; charset=utf-8"}, b"<!doctype html><p>hello")
SENTENCE = (
    "User: arn:aws:iam::111122223333:user/ada is not authorized to perform: s3:ListBucket on resource:"
    ' "arn:aws:s3:::audited" because no identity-based policy allows the s3:ListBucket action'
)


def last(err: str) -> str:
    assert all(line.startswith("auditor: ") for line in err.splitlines()), err
    return err.splitlines()[-1]


@pytest.mark.parametrize("engine", OURS_FIRST)
@pytest.mark.parametrize("status", [200, 403, 404])
def test_a_web_page_is_no_s3_server(run: Run, engine: str, status: int) -> None:
    def hook(call: Call) -> Reply:
        return Reply(status, PAGE.headers, b"" if call.method == "HEAD" else PAGE.body)

    with HookedServer(hook=hook) as web:
        code, out, err = run(*AUDIT, "--endpoint-url", web.url, "--engine", engine)
    assert (code, out) == (1, "")
    said = f"{web.url} is not an S3 server: it answers with text/html; check --endpoint-url"
    if status == 404:  # some servers answer so for a bucket that they do not have
        said = f"{web.url} has no bucket named 'audited', or {said}"
    assert last(err) == f"auditor: {said}"


class _Silent(ThreadingHTTPServer):
    """Says nothing of clients that hang up."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def tls_server(folder: Path, name: str = "127.0.0.1", days: tuple[int, int] = (-1, 1)) -> Iterator[int]:
    """Yield the port of a server on 127.0.0.1 that speaks TLS and nothing else, with a certificate for this name."""
    server = _Silent(("127.0.0.1", 0), BaseHTTPRequestHandler)
    context: ssl.SSLContext = made(folder, name, days=days).server
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_the_other_scheme_or_a_wrong_certificate_is_named(
    run: Run, stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    (tmp_path / "auditor.toml").write_text("retry_seconds = 0.2\n")

    def said(url: str, code: int = 1) -> str:
        found, out, err = run(*AUDIT, "--endpoint-url", url, "--engine", engine)
        assert (found, out) == (code, "")
        return last(err).removeprefix(f"auditor: {url} ")

    https = stub.url.replace("http://", "https://")
    assert said(https) == "speaks http: begin the endpoint's URL with http://"
    with tls_server(tmp_path) as port:
        assert said(f"http://127.0.0.1:{port}") == "speaks https: begin the endpoint's URL with https://"
        url = f"https://127.0.0.1:{port}"
        assert said(url) == "has a certificate that is not trusted: name its issuer's certificate in AWS_CA_BUNDLE"
        monkeypatch.setenv("AWS_CA_BUNDLE", "bundle.pem")
        for text in (None, "", "no certificate"):
            if text is not None:
                (tmp_path / "bundle.pem").write_text(text)
            words = said(url, 2)
            assert words.startswith("auditor: no certificates can be read from 'bundle.pem' (")
            assert words.endswith("): fix AWS_CA_BUNDLE, or ca_bundle in the AWS configuration")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
    for name, days, end in (
        ("127.0.0.1", (-9, -1), "that has expired: renew it, or set this machine's clock"),
        ("127.0.0.1", (5, 9), "that is not valid yet: set this machine's clock, or wait"),
        ("elsewhere.example", (-1, 1), "of another host: check the host's name in --endpoint-url"),
    ):
        with tls_server(tmp_path, name, days) as port:
            assert said(f"https://127.0.0.1:{port}") == f"has a certificate {end}"


class _Proxy(BaseHTTPRequestHandler):
    """Gives each request the answer of its server, and hangs up."""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        self.wfile.write(getattr(self.server, "answer"))  # noqa: B009 - no member of the base class


@contextmanager
def proxy(answer: bytes) -> Iterator[str]:
    """Yield the URL of a proxy, with a user and password, that answers every request so."""
    server = _Silent(("127.0.0.1", 0), _Proxy)
    setattr(server, "answer", answer)  # noqa: B010 - as above
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://ada:marker@127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def answered(status: str) -> bytes:
    body = b"<html>blocked</html>"
    return f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


THROUGH = "cannot be reached through the proxy 127.0.0.1 ("
NO_PAGE = "is not an S3 server: it answers with text/html; check --endpoint-url and the proxy"


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_a_proxy_that_does_not_connect_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    (tmp_path / "auditor.toml").write_text("retry_seconds = 0.2\n")
    monkeypatch.setenv("NO_PROXY", "")
    for scheme, answer, said in (
        ("https", answered("407 Proxy Authentication Required"), THROUGH),
        ("https", answered("200 OK"), THROUGH),
        ("https", b"\0\1 no HTTP\r\n\r\n", THROUGH),
        ("https", b"", THROUGH),
        ("http", answered("407 Proxy Authentication Required"), THROUGH),
        ("http", answered("403 Forbidden"), NO_PAGE),
        ("http", answered("200 OK"), NO_PAGE),
    ):
        with proxy(answer) as address:
            monkeypatch.setenv(f"{scheme.upper()}_PROXY", address)
            code, out, err = run(*AUDIT, "--endpoint-url", f"{scheme}://127.0.0.1:1", "--engine", engine)
        assert (code, out, "marker" in err) == (1, "", False)
        assert last(err).startswith(f"auditor: {scheme}://127.0.0.1:1 {said}"), answer
    for address in ("http://[::1", "ftp://ada:marker@proxy:21", "http://proxy:99999", "socks5://p:1"):
        monkeypatch.setenv("HTTPS_PROXY", address)
        code, out, err = run(*AUDIT, "--endpoint-url", "https://127.0.0.1:1", "--engine", engine)
        assert (code, out) == (2, "")
        wanted = "HTTPS_PROXY is not the URL of an HTTP proxy: write it like http://proxy.example:3128"
        assert last(err) == f"auditor: {wanted}"


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_the_words_of_a_refused_listing_are_printed(run: Run, stub: StubServer, engine: str) -> None:
    def hook(call: Call) -> Reply | None:
        refused = call.operation == "ListObjectsV2"
        return Refused(403, "AccessDenied", SENTENCE).reply(call) if refused else None

    with HookedServer(stub.world, hook) as server:
        code, _, err = run(*AUDIT, "--endpoint-url", server.url, "--engine", engine)
    assert code == 1
    words = SENTENCE.replace('"', "'")
    assert last(err) == (
        "auditor: the listing of s3://audited failed (ListObjectsV2: AccessDenied): grant s3:ListBucket; S3 says:"
        f' "{words}"'
    )


@pytest.mark.parametrize(("refusals", "lines"), [(2, 0), (3, 1), (9, 1)])
async def test_the_third_refusal_is_told_once_with_its_end(
    caplog: pytest.LogCaptureFixture, refusals: int, lines: int
) -> None:
    time, left = FakeTime(), refusals

    async def attempt() -> int:
        nonlocal left
        left -= 1
        if left >= 0:
            raise CallFailed("ListObjectsV2", "SlowDown", 503)
        return 1

    caller = make_caller(time, retry=RetryPolicy(15, 60.0))
    for _ in range(2):
        await caller.call("list", "ListObjectsV2", attempt)
        left = refusals  # a server that has answered once is no news
    assert len(caplog.messages) == lines
    assert all("ListObjectsV2 with SlowDown: it is tried again until " in said for said in caplog.messages)
