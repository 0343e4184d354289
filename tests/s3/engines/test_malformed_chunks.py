"""Chunks that are malformed after their answer's head, or have no end: a failed call, in time, on every engine."""

from __future__ import annotations

import asyncio

from tests.s3.engines.common import CALLS, failure_of
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


async def test_malformed_chunk_after_the_head_is_a_broken_reply(opening: Opening) -> None:
    now: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in now:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.05)  # the client reads each piece by itself
        await reader.read()  # until the client hangs up

    found = {}
    async with streams_served(serve) as (host, port), opening(endpoint_url=f"http://{host}:{port}") as engine:
        for what, pieces in MALFORMED.items():
            now[:] = pieces
            for operation in OPERATIONS:
                found[what, operation] = (await failure_of(engine, CALLS[operation])).code
    assert found == dict.fromkeys(found, "BrokenReply")
