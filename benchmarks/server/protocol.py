"""HTTP/1.1 on asyncio: httptools parses the requests, and each answer is written at once."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, cast

import httptools

from benchmarks.server import dynamodb
from benchmarks.server.answers import CONTROL, Answer, Answers, Asked
from benchmarks.server.files import BUCKET
from benchmarks.server.objects import BLOCK

PIECE: Final = 256 * 1024
_KEPT: Final = (CONTROL.encode(), f"/{BUCKET}/".encode())
SHORTEST_PAUSE: Final = 0.005
"""Seconds; a body with a limited bandwidth is sent in pieces that take longer than this."""


@asynccontextmanager
async def listening(answers: Answers, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve on a free port of this machine; yields the URL. At the end, open connections are closed."""
    opened: set[asyncio.Transport] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answers, opened), "127.0.0.1", 0, ssl=tls, backlog=1024)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for transport in tuple(opened):
            transport.abort()
        await asyncio.sleep(0)


class Connection(asyncio.Protocol):
    """Serves one request after the other. A client must wait for an answer before its next request.

    opened: the set of open connections.
    """

    def __init__(self, answers: Answers, opened: set[asyncio.Transport]) -> None:
        self._answers = answers
        self._opened = opened
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._length = 0
        self._kept: list[bytes] = []
        self._resume: Callable[[], None] | None = None
        self._read_until = 0.0
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._answers.gate.counters.connections += 1
        self._opened.add(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._opened.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._resume is not None:
            resume, self._resume = self._resume, None
            resume()

    def on_message_begin(self) -> None:
        self._url, self._headers, self._length = b"", {}, 0
        self._kept.clear()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        if b"expect" in self._headers:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._length += len(body)
        if self._url.startswith(_KEPT) or dynamodb.TARGET in self._headers:
            self._kept.append(body)
        bandwidth = self._answers.gate.behaviour.bandwidth
        if bandwidth is not None:
            self._hold_back(len(body) / bandwidth)

    def _hold_back(self, seconds: float) -> None:
        """Read on after the time that these bytes take at the bandwidth."""
        now = self._loop.time()
        self._read_until = max(self._read_until, now) + seconds
        if self._read_until - now > SHORTEST_PAUSE and self._transport.is_reading():
            self._transport.pause_reading()
            self._loop.call_at(self._read_until, self._read_on)

    def _read_on(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode()
        asked = Asked(method, self._url.decode("latin-1"), self._headers, self._length, b"".join(self._kept))
        answer = self._answers.answer(asked)
        latency = self._answers.gate.behaviour.latency
        wait = max(latency, self._read_until - self._loop.time())
        if wait > 0 and not asked.target.startswith(CONTROL):
            self._loop.call_later(wait, self._send, answer)
        else:
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        if self._transport.is_closing():
            return
        bandwidth = self._answers.gate.behaviour.bandwidth
        if answer.body is None:
            self._transport.write(answer.head)
            self._send_block(answer.start, answer.length)
        elif bandwidth is None or len(answer.body) < PIECE:
            self._transport.write(answer.head + answer.body if answer.body else answer.head)
        else:
            self._transport.write(answer.head)
            self._send_rest(memoryview(answer.body))

    def _send_block(self, start: int, left: int) -> None:
        """Send BLOCK repeatedly, from `start` on."""
        while left and not self._transport.is_closing():
            piece = min(PIECE, left, len(BLOCK) - start)
            self._transport.write(memoryview(BLOCK)[start : start + piece])
            left -= piece
            start = (start + piece) % len(BLOCK)
            bandwidth = self._answers.gate.behaviour.bandwidth
            if bandwidth is not None:
                self._loop.call_later(piece / bandwidth, self._send_block, start, left)
                return
            if self._paused:
                self._resume = partial(self._send_block, start, left)
                return

    def _send_rest(self, rest: memoryview) -> None:
        """Send bytes from memory, no faster than the bandwidth."""
        if self._transport.is_closing() or not rest:
            return
        self._transport.write(rest[:PIECE])
        bandwidth = self._answers.gate.behaviour.bandwidth or float("inf")
        self._loop.call_later(PIECE / bandwidth, self._send_rest, rest[PIECE:])
