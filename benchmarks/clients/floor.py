"""The floor: write requests that were signed beforehand, and find the end of each answer; nothing is parsed.

No client can be cheaper on this loop. It finds the server's ceiling, and plays the bucket's other users.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast
from urllib.parse import urlsplit

import uvloop

from benchmarks.clients.signing import Credentials, object_request, sign
from benchmarks.meter import Meter
from benchmarks.server.objects import BUCKET, key_of

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def prepared(url: str, bucket: str, keys: Sequence[str], operations: Sequence[str], now: float) -> list[bytes]:
    """The requests of each object, ready to be written."""
    credentials, host = Credentials("testing", "testing", "us-east-1"), urlsplit(url).netloc
    return [_bytes(credentials, host, operation, bucket, key, now) for key in keys for operation in operations]


def _bytes(credentials: Credentials, host: str, operation: str, bucket: str, key: str, now: float) -> bytes:
    method, path, query = object_request(operation, bucket, key)
    headers = sign(credentials, method, host, path, query, now) | {"x-caller": "foreground"}
    lines = [f"{method} {path}{'?' + query if query else ''} HTTP/1.1", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


class FloorConnection(asyncio.Protocol):
    """Sends one request at a time. answered: called with the status of each whole answer."""

    def __init__(self, answered: Callable[[FloorConnection, bytes], None]) -> None:
        self._answered = answered
        self._transport: asyncio.Transport
        self._left = 0
        self._head = False
        self._status = b""
        self._partial = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, request: bytes) -> None:
        self._head = request.startswith(b"HEAD")
        self._transport.write(request)

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        if not self._left:
            data = self._partial + data if self._partial else data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._partial = data
                return
            self._partial = b""
            self._status = data[9:12]
            if self._head:
                self._answered(self, self._status)
                return
            found = _LENGTH.search(data, 0, end)
            self._left = (int(found[1]) if found else 0) + end + 4
        self._left -= len(data)
        if self._left <= 0:
            self._left = 0
            self._answered(self, self._status)


async def connect(url: str, tls: ssl.SSLContext | None, answered: Callable[[FloorConnection, bytes], None]) -> object:
    """Open one connection, which is passed to `answered` only."""
    host = urlsplit(url)
    _, protocol = await asyncio.get_running_loop().create_connection(
        lambda: FloorConnection(answered), str(host.hostname), host.port or 80, ssl=tls
    )
    return protocol


class Floor:
    """Send every request as fast as `concurrency` connections can."""

    def __init__(self, url: str, authority: str | None, concurrency: int) -> None:
        self._url = url
        self._tls = ssl.create_default_context(cafile=authority) if url.startswith("https") else None
        self._concurrency = concurrency
        self._connections: list[FloorConnection] = []
        self._waiting: deque[bytes] = deque()
        self._in_flight = 0
        self._failed = 0
        self._done: asyncio.Future[None]

    async def open(self) -> None:
        for _ in range(self._concurrency):
            made = await connect(self._url, self._tls, self._next)
            self._connections.append(cast(FloorConnection, made))

    async def run(self, requests: Sequence[bytes]) -> None:
        """Raise RuntimeError if the status of an answer was not 200."""
        self._done = asyncio.get_running_loop().create_future()
        self._waiting.extend(requests)
        for connection in self._connections:
            if self._waiting:
                self._in_flight += 1
                connection.send(self._waiting.popleft())
        await self._done
        if self._failed:
            raise RuntimeError(f"{self._failed} of {len(requests)} calls were refused")

    def _next(self, connection: FloorConnection, status: bytes) -> None:
        self._failed += status != b"200"
        if self._waiting:
            connection.send(self._waiting.popleft())
            return
        self._in_flight -= 1
        if not self._in_flight:
            self._done.set_result(None)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def calls(
    meter: Meter, *, url: str, authority: str, operations: Sequence[str], concurrency: int, objects: int
) -> dict[str, Any]:
    """Measure the calls of so many objects, on open connections."""
    keys = [key_of(number % 1000) for number in range(objects)]
    requests = prepared(url, BUCKET, keys, operations, time.time())

    async def measure() -> None:
        floor = Floor(url, authority, concurrency)
        await floor.open()
        await floor.run(requests[: 2 * concurrency])
        with meter.measuring():
            await floor.run(requests)
        floor.close()

    uvloop.run(measure())
    return {"calls": len(requests)}
