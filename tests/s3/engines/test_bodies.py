"""A GetObject without a length or an ETag in its answer is a failed call on every engine."""

from __future__ import annotations

import asyncio

import pytest

from auditor.errors import CallFailed
from auditor.hashing.digest.object import hash_object
from auditor.hashing.digest.result import Failed
from auditor.hashing.queue.message import HashTask
from auditor.s3.engines.base import Engine, Span
from tests.s3.engines.conftest import Opening
from tests.support.servers.ends import streams_served

TAIL = b"\r\nConnection: close\r\n\r\n"
ETAG = b'\r\nETag: "e"\r\nContent-Length: 4' + TAIL + b"data"
WITHOUT = {
    "ETag": b"HTTP/1.1 200 OK\r\nContent-Length: 4" + TAIL + b"data",
    "Content-Length": b'HTTP/1.1 200 OK\r\nETag: "e"\r\nTransfer-Encoding: chunked' + TAIL + b"4\r\ndata\r\n0\r\n\r\n",
}
ANOTHER_SPAN = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/9" + ETAG
OTHER_SPANS = {
    "all of it": b"HTTP/1.1 200 OK" + ETAG,
    "another": ANOTHER_SPAN,
    "more": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-9/99" + ETAG,
    "nonsense": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-x/9" + ETAG,
}


async def test_answer_without_its_facts_or_with_another_span(opening: Opening) -> None:
    now: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(now[0])
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def refused(engine: Engine, etag: str | None = "e", span: Span | None = None) -> tuple[str, str]:
        with pytest.raises(CallFailed) as caught:
            async with engine.get("key", None, etag, span):
                pass
        return caught.value.action, caught.value.code

    found = {}
    async with streams_served(serve) as (host, port), opening(endpoint_url=f"http://{host}:{port}") as engine:
        task = HashTask("key", None, "e", 4)
        for missing, answer in WITHOUT.items():
            now[:] = [answer]
            found[missing] = await refused(engine, None)
            assert await hash_object(engine, task, ("sha256",)) == Failed(task, "Malformed", retryable=False)
        for what, answer in OTHER_SPANS.items():
            now[:] = [answer]
            found[what] = await refused(engine, span=Span(2, 5))
        now[:] = [ANOTHER_SPAN]
        found["a span where all was asked for"] = await refused(engine)
    assert found == dict.fromkeys(found, ("GetObject", "Malformed"))
