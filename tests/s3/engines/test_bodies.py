"""A GetObject without a length or an ETag in its answer is a failed call on every engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from auditor.aws.connection import Connection
from auditor.errors import CallFailed
from auditor.hashing.digest.object import hash_object
from auditor.hashing.digest.result import Failed
from auditor.hashing.queue.message import HashTask
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Span
from tests.support.engine_names import INSTALLED
from tests.support.servers.ends import streams_served

TAIL = b"\r\nConnection: close\r\n\r\n"
WITHOUT = {
    "ETag": b"HTTP/1.1 200 OK\r\nContent-Length: 4" + TAIL + b"data",
    "Content-Length": b'HTTP/1.1 200 OK\r\nETag: "e"\r\nTransfer-Encoding: chunked' + TAIL + b"4\r\ndata\r\n0\r\n\r\n",
}


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """A server that answers every request with the same bytes; yields its URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with streams_served(serve) as (host, port):
        yield f"http://{host}:{port}"


@pytest.mark.parametrize("missing", WITHOUT)
@pytest.mark.parametrize("name", INSTALLED)
async def test_answer_without(name: str, missing: str) -> None:
    async with (
        answering(WITHOUT[missing]) as url,
        ENGINES[name](Connection(bucket="bucket", region="us-east-1", endpoint_url=url, concurrency=1)) as engine,
    ):
        with pytest.raises(CallFailed) as caught:
            async with engine.get("key", None, None):
                pass
        assert (caught.value.action, caught.value.code) == ("GetObject", "Malformed")
        task = HashTask("key", None, "e", 4)
        assert await hash_object(engine, task, ("sha256",)) == Failed(task, "Malformed", retryable=False)


OTHER_SPANS = {
    "all of it": b"HTTP/1.1 200 OK",
    "another": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/9",
    "more": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-9/99",
    "nonsense": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-x/9",
}


@pytest.mark.parametrize("what", OTHER_SPANS)
@pytest.mark.parametrize("name", INSTALLED)
async def test_answer_with_another_span_than_asked_for(name: str, what: str) -> None:
    answer = OTHER_SPANS[what] + b'\r\nETag: "e"\r\nContent-Length: 4' + TAIL + b"data"
    async with (
        answering(answer) as url,
        ENGINES[name](Connection(bucket="bucket", region="us-east-1", endpoint_url=url, concurrency=1)) as engine,
    ):
        with pytest.raises(CallFailed) as caught:
            async with engine.get("key", None, "e", Span(2, 5)):
                pass
        assert caught.value.code == "Malformed"


@pytest.mark.parametrize("name", INSTALLED)
async def test_answer_with_a_span_where_all_was_asked_for(name: str) -> None:
    answer = OTHER_SPANS["another"] + b'\r\nETag: "e"\r\nContent-Length: 4' + TAIL + b"data"
    async with (
        answering(answer) as url,
        ENGINES[name](Connection(bucket="bucket", region="us-east-1", endpoint_url=url, concurrency=1)) as engine,
    ):
        with pytest.raises(CallFailed) as caught:
            async with engine.get("key", None, "e"):
                pass
        assert caught.value.code == "Malformed"
