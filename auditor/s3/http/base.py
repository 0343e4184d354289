"""The interface of a transport: it sends signed requests to one server, and knows nothing of S3."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from auditor.model.record import record

LARGEST_BODY: Final = 32 * 1024 * 1024
"""Bytes of a body that is buffered; a page of a listing has about 10 MiB at most."""
LARGEST_HEAD: Final = 64 * 1024
"""Bytes of an answer's status line and headers; S3 sends less than a tenth of that."""
MOST_HEADERS: Final = 256
"""Headers of an answer: some twenty of S3's own, and those that fit in two kilobytes of user metadata."""
IDLE_SECONDS: Final = 4.0
"""A connection that was idle for longer is not used again. S3 closes idle connections after about five seconds (seen
by the authors of several clients, documented nowhere), and a request that meets the close is lost.
"""
ANSWER_SECONDS: Final = 120.0
"""Enough for a page of half a megabyte at four kilobytes a second."""

LEAST_RATE: Final = 1024.0
"""Bytes a second; a body that arrives more slowly is given up, for it only occupies a connection."""
SLOW_SECONDS: Final = 60.0


class TransportError(Exception):
    """There is no complete answer.

    TransportError
    |-- ConnectionLostError   refused, reset, closed early, TLS or proxy failed
    |-- TransportTimeoutError connecting, waiting for the next byte, or the whole answer took too long
    `-- BrokenAnswerError     the answer is not HTTP/1.1, or larger than a limit

    read: bytes of a body that the reader's buffer has.
    """

    read: int = 0


class ConnectionLostError(TransportError):
    """The connection was refused, reset, or closed before the end of the answer; or TLS or the proxy failed."""


class TransportTimeoutError(TransportError):
    """The connection, the next bytes, or the whole answer took longer than the limit."""


class BrokenAnswerError(TransportError):
    """The answer is not HTTP/1.1, or larger than a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The server of a transport, and the limits of its connections.

    connections: most at once. tls: None for plain HTTP. Timeouts in seconds: `read_timeout` for the next bytes,
    `answer_timeout` for a whole buffered answer, or for the head of a stream. A connection idle for longer than
    `idle_seconds` is not used again. largest_body: bytes of a buffered answer. least_rate: bytes a second of a stream's
    body; fewer, over `slow_seconds` in which a reader waited, end it with TransportTimeoutError. proxy: URL of an HTTP
    proxy.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    connections: int = 64
    connect_timeout: float = 5.0
    read_timeout: float = 20.0
    answer_timeout: float = ANSWER_SECONDS
    idle_seconds: float = IDLE_SECONDS
    largest_body: int = LARGEST_BODY
    least_rate: float = LEAST_RATE
    slow_seconds: float = SLOW_SECONDS
    proxy: str | None = None


@record()
class Request:
    """A GET or HEAD without a body. target: path and query, percent-encoded as they were signed.

    headers: names and values in the order of sending, Host included; they hold no line break.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]


@record()
class Response:
    """A complete answer. headers: lower-case names; values without blanks around them, those of a repeated name joined
    with ", ". reason: the reason phrase. body: b"" for a HEAD.
    """

    status: int
    reason: str
    headers: Mapping[bytes, bytes]
    body: bytes


class Transport(Protocol):
    """Sends one request at a time on each connection, and keeps the connections open. It follows no redirect."""

    async def send(self, request: Request) -> Response:
        """Raises TransportError."""
        ...

    @property
    def open_connections(self) -> int:
        """Connections that can take a request at once; 0 where the transport cannot count them."""
        ...

    def keep_idle(self, connections: int) -> None:
        """Close idle connections beyond so many, where the transport can."""
        ...

    async def close(self) -> None: ...


class Stream(Protocol):
    """An answer whose body is still arriving."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def headers(self) -> Mapping[bytes, bytes]: ...
    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer with the next bytes, and return their number: less than its length at the body's end only.

        Raises TransportError, whose `read` is the number of bytes in the buffer.
        """
        ...


class StreamingTransport(Protocol):
    """A transport for bodies that are too large to buffer."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """The answer, once its head is complete; raises TransportError. The unread rest of the body is dropped."""
        ...

    async def close(self) -> None: ...
