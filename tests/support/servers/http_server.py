"""HTTP/1.1 of our own servers on asyncio: httptools parses the requests, and each answer is written at once."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, cast

import httptools

from tests.support.servers.ends import all_ended, no_longer_listening

PIECE: Final = 256 * 1024
SHORTEST_PAUSE: Final = 0.005
"""Seconds; a body with a limited bandwidth is sent in pieces that take longer than this."""
_NO_LINGER: Final = struct.pack("ii", 1, 0)
_BROKEN: Final = b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
Read = Callable[[int, int], bytes | memoryview]
"""Reads a body piece by piece: some of the bytes from a start on, at least one and at most a number of them."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Asked:
    """A whole request. headers: lower-case names. body: empty where nobody keeps it."""

    method: str
    target: str
    headers: Mapping[bytes, bytes]
    body: bytes


class After(Enum):
    """The fate of a connection after an answer. RESET breaks it (RST, not FIN); STALLED keeps it, and sends no more."""

    KEPT = "kept"
    CLOSED = "closed"
    RESET = "reset"
    STALLED = "stalled"


@dataclass(slots=True)
class Answer:
    """An answer. head: status line and headers. body: its bytes, or the reader of `length` bytes from `start`."""

    head: bytes = b""
    body: bytes | Read = b""
    start: int = 0
    length: int = 0
    after: After = After.KEPT


@dataclass(slots=True)
class Later:
    """An answer that is asked for after a while. seconds: the time until then."""

    seconds: float
    then: Callable[[], Answer | Later]


class Application:
    """Answers the requests of all connections. in_flight: number of requests that wait for the end of their answer.

    bandwidth: bytes a second and connection, either way; None for no limit.
    """

    in_flight = 0

    @property
    def bandwidth(self) -> float | None:
        return None

    def connected(self) -> None:
        """A client has opened a connection."""

    def keeps(self, url: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """The bodies of such requests are wanted."""
        return True

    def answer(self, asked: Asked) -> Answer | Later:
        raise NotImplementedError


def held(data: bytes | memoryview) -> Read:
    """The reader of bytes in memory."""
    view = memoryview(data)
    return lambda start, length: view[start : start + length]


@asynccontextmanager
async def listening(application: Application, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[str]:
    """Serve on this machine; yields the URL. port: 0 for a free one. At the end, open connections are closed."""
    opened: set[asyncio.BaseTransport] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(application, opened), "127.0.0.1", port, ssl=tls, backlog=1024)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await no_longer_listening(server)
        await all_ended(opened)


class Connection(asyncio.Protocol):
    """Serves one request after the other. A client must wait for an answer before its next request.

    opened: the set of open connections.
    """

    def __init__(self, application: Application, opened: set[asyncio.BaseTransport]) -> None:
        self._application = application
        self._opened = opened
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._kept: list[bytes] = []
        self._serving = False
        self._closes = False
        self._timer: asyncio.TimerHandle | None = None
        self._resume: Callable[[], None] | None = None
        self._read_until = 0.0
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._application.connected()
        self._opened.add(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._opened.discard(self._transport)
        if self._timer is not None:
            self._timer.cancel()
        self._served()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.write(_BROKEN % b"400 Bad Request")
            self._transport.close()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._resume is not None:
            resume, self._resume = self._resume, None
            resume()

    def on_message_begin(self) -> None:
        self._url, self._headers = b"", {}
        self._kept.clear()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        if b"expect" in self._headers:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if self._application.keeps(self._url, self._headers):
            self._kept.append(body)
        bandwidth = self._application.bandwidth
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
        if self._serving:
            self._transport.abort()
            return
        self._serving = True
        self._closes = not self._parser.should_keep_alive()
        self._application.in_flight += 1
        method = self._parser.get_method().decode()
        asked = Asked(method, self._url.decode("latin-1"), self._headers, b"".join(self._kept))
        self._answer(partial(self._application.answer, asked))

    def _answer(self, ask: Callable[[], Answer | Later]) -> None:
        """Send the answer, after its time, and not before the request has taken its own at the bandwidth."""
        try:
            answer = ask()
        except Exception:
            _log.exception("no answer to %s", self._url)
            answer = Answer(_BROKEN % b"500 Internal Server Error", after=After.CLOSED)
        if isinstance(answer, Later):
            self._timer = self._loop.call_later(answer.seconds, self._answer, answer.then)
        elif self._read_until and self._read_until > self._loop.time():
            self._timer = self._loop.call_at(self._read_until, self._send, answer)
        else:
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        if self._transport.is_closing():
            return
        body = answer.body
        after = After.CLOSED if self._closes and answer.after is After.KEPT else answer.after
        if not isinstance(body, bytes):
            self._transport.write(answer.head)
            self._send_pieces(body, answer.start, answer.length, after)
        elif len(body) < PIECE:
            self._end(answer.head + body if body else answer.head, after)
        else:
            self._transport.write(answer.head)
            self._send_pieces(held(body), 0, len(body), after)

    def _send_pieces(self, read: Read, start: int, left: int, after: After) -> None:
        """Send `left` bytes of the body from `start` on, no faster than the bandwidth and the client."""
        while not self._transport.is_closing():
            piece = read(start, min(PIECE, left))
            start += len(piece)
            left -= len(piece)
            if not left:
                self._end(piece, after)
                return
            self._transport.write(piece)
            bandwidth = self._application.bandwidth
            following = partial(self._send_pieces, read, start, left, after)
            if bandwidth is not None:
                self._timer = self._loop.call_later(len(piece) / bandwidth, following)
                return
            if self._paused:
                self._resume = following
                return

    def _end(self, last: bytes | memoryview, after: After) -> None:
        """Write the last bytes. The request counts as served before the client can have them."""
        if after is After.STALLED:
            self._transport.write(last)
            return
        self._served()
        if after is After.RESET:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self._transport.abort()
            return
        self._transport.write(last)
        if after is After.CLOSED:
            self._transport.close()

    def _served(self) -> None:
        if self._serving:
            self._serving = False
            self._application.in_flight -= 1
