"""What a transport is: it carries one signed request to one server and its answer back, and knows nothing of S3."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from auditor.model.record import record

LARGEST_BODY: Final = 32 * 1024 * 1024
"""Bytes of a body that is held whole; a page of a listing has at most about 10 MiB."""
LARGEST_HEAD: Final = 64 * 1024
"""Bytes of an answer's status line and headers; S3's own stay below a tenth of it."""
MOST_HEADERS: Final = 256
"""Headers of an answer: some twenty of S3's own, and as many as two kilobytes of user metadata hold."""
IDLE_SECONDS: Final = 4.0
"""A connection that was idle for longer is not used again. S3 closes one after some five seconds (observed by the
authors of several clients, documented nowhere), and what is sent into that close is lost; a new one costs a handshake.
"""
ANSWER_SECONDS: Final = 120.0
"""A page of half a megabyte has come by then even where four kilobytes come in a second."""

LEAST_RATE: Final = 1024.0
"""Bytes a second: a body that comes more slowly keeps its connection and its reader for nothing."""
SLOW_SECONDS: Final = 60.0


class TransportError(Exception):
    """No whole answer came.

    TransportError
    |-- ConnectionLostError   refused, reset, closed early, TLS or proxy failed
    |-- TransportTimeoutError connecting, waiting for the next byte, or the whole answer took too long
    `-- BrokenAnswerError     what came is not HTTP/1.1, or passes a limit

    read: bytes of a body that were in the reader's buffer by then.
    """

    read: int = 0


class ConnectionLostError(TransportError):
    """Refused, reset, closed before the answer was whole; TLS or the proxy failed."""


class TransportTimeoutError(TransportError):
    """Connecting, waiting for the next bytes, or all of an answer took longer than its limit."""


class BrokenAnswerError(TransportError):
    """Not HTTP/1.1, or larger than a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where every request of a transport goes.

    connections: most at once. tls: None for plain HTTP. timeouts: seconds; `read_timeout` is for the next bytes,
    `answer_timeout` for an answer that is held whole, and for the head of a stream, however often some bytes come; a
    connection idle for longer than `idle_seconds` is not used again. largest_body: bytes that the thin transport holds
    of one answer. least_rate: bytes a second of a stream's body; one that brings fewer, over `slow_seconds` in which a
    reader waited, ends with TransportTimeoutError. proxy: URL of an HTTP proxy, or None.
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

    headers: names and values in the order in which they are sent, Host included; checked to hold no line break.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]


@record()
class Response:
    """An answer, whole. headers: lower-case names; each value without blanks around it, those of a repeated name joined
    with ", ". reason: its phrase. body: b"" for a HEAD.
    """

    status: int
    reason: str
    headers: Mapping[bytes, bytes]
    body: bytes


class Transport(Protocol):
    """Sends one request at a time on each of its connections, and keeps those open. No redirect is followed."""

    async def send(self, request: Request) -> Response:
        """Raises TransportError."""
        ...

    @property
    def open_connections(self) -> int:
        """That can take a request at once; 0 where that cannot be told."""
        ...

    def keep_idle(self, connections: int) -> None:
        """Close idle connections beyond so many, where that can be done."""
        ...

    async def close(self) -> None: ...


class Stream(Protocol):
    """An answer whose body is still on its way."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def headers(self) -> Mapping[bytes, bytes]: ...
    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer with the bytes that come next; how many there are: fewer than its length at the end only.

        Raises TransportError, whose `read` says how many of the buffer's bytes had come.
        """
        ...


class StreamingTransport(Protocol):
    """A transport for bodies too large to be held."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """The answer once its head is there; raises TransportError. What is not read by the end is thrown away."""
        ...

    async def close(self) -> None: ...
