"""Every engine verifies certificates with the user's trusted authorities, also behind a proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from auditor.aws.connection import Connection
from auditor.s3.engines import ENGINES
from tests.s3.engines.common import CALLS, failure_of
from tests.s3.http.certificates import Tls, made
from tests.support.engine_names import INSTALLED
from tests.support.servers.clients import BUCKET
from tests.support.servers.ends import streams_served
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def _both_ways(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    there, back = await asyncio.open_connection(host, port)
    try:
        await asyncio.gather(_pipe(reader, back), _pipe(there, writer))
    finally:
        back.transport.abort()


@asynccontextmanager
async def tls_before(url: str, tls: ssl.SSLContext) -> AsyncIterator[str]:
    """A TLS server in front of a plain one; yields its URL."""
    parts = urlsplit(url)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _both_ways(reader, writer, str(parts.hostname), int(parts.port or 0))

    async with streams_served(serve, tls) as (host, port):
        yield f"https://{host}:{port}"
        await asyncio.sleep(0.2)  # until the ends of refused handshakes have come in, and their sockets are closed


@asynccontextmanager
async def connect_proxy(asked: list[str]) -> AsyncIterator[str]:
    """A proxy that knows CONNECT; asked: where to."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.decode().split(" ", 2)
        asked.append(f"{method} {target}")
        host, _, port = target.partition(":")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await _both_ways(reader, writer, host, int(port))

    async with streams_served(serve) as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tls:
    """A certificate for 127.0.0.1, which the environment does not trust."""
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    return made(tmp_path, "127.0.0.1")


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize("name", INSTALLED)
async def test_certificate(
    stub: StubServer,
    bucket: StubBucket,
    tls: Tls,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    proxied: bool,
    trusted: bool,
) -> None:
    bucket.put("key", b"body")
    asked: list[str] = []
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(tls_before(stub.url, tls.server))
        if proxied:
            monkeypatch.setenv("HTTPS_PROXY", await stack.enter_async_context(connect_proxy(asked)))
        if trusted:
            monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
        connection = Connection(bucket=BUCKET, region="us-east-1", endpoint_url=url, concurrency=2)
        engine = await stack.enter_async_context(ENGINES[name](connection))
        for operation, call in CALLS.items():
            if trusted:
                await call(engine)
            else:
                failure = await failure_of(engine, call)
                assert (failure.action, failure.code) == (operation, "ConnectionError")
    assert [logged.operation for logged in stub.requests] == (list(CALLS) if trusted else [])
    assert set(asked) == ({f"CONNECT {urlsplit(url).netloc}"} if proxied else set())
