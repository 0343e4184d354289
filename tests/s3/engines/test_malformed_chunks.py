"""Chunks that are malformed after their answer's head, or have no end: a failed call, in time, on every engine."""

from __future__ import annotations

import asyncio

import pytest

from auditor.errors import CallFailed
from tests.s3.engines.common import CALLS
from tests.s3.engines.conftest import Opening
from tests.support.servers.ends import streams_served

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nTransfer-Encoding: chunked\r\n\r\n"
MALFORMED = {
    "a size of too many digits": [CHUNKED, b"1" * 100_000],
    "a size that is no number": [CHUNKED, b"many\r\n"],
    "a size that is no number, after a chunk": [CHUNKED, b"3\r\n<a>\r\n", b"many\r\n"],
    "a chunk longer than its size": [CHUNKED, b"3\r\n", b"<a></a>\r\n"],
}
OPERATIONS = ("ListObjectsV2", "ListObjectVersions", "GetObjectAcl")


async def code_of(opening: Opening, operation: str, url: str, read_timeout: float) -> str:
    async with opening(endpoint_url=url, read_timeout=read_timeout) as engine:
        with pytest.raises(CallFailed) as caught:
            await CALLS[operation](engine)
    return caught.value.code


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("what", MALFORMED)
async def test_malformed_chunk_after_the_head_is_a_broken_reply(opening: Opening, operation: str, what: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in MALFORMED[what]:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.05)  # the client reads each piece by itself
        await reader.read()  # until the client hangs up

    async with streams_served(serve) as (host, port):
        assert await code_of(opening, operation, f"http://{host}:{port}", 20.0) == "BrokenReply"


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_extension_of_a_chunk_without_end_ends(opening: Opening, operation: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"1;")
        while True:
            writer.write(b"a" * 1000)
            await writer.drain()
            await asyncio.sleep(0.01)

    async with streams_served(serve) as (host, port):
        assert await code_of(opening, operation, f"http://{host}:{port}", 0.5) in {"BrokenReply", "Timeout"}
