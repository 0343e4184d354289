"""The interface of a transport, which sends signed HTTP requests to one server and knows nothing of S3; and the bytes
of a request in HTTP/1.1.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from msgspec import Struct

LARGEST_BODY: Final = 8 * 1024 * 1024
"""Limit in bytes of a buffered body. A page of 1,000 keys of 1,024 escaped bytes has 4 MiB."""
LARGEST_HEAD: Final = 64 * 1024
"""Limit in bytes of an answer's status line and headers. S3 sends less than a tenth of it."""
MOST_HEADERS: Final = 256
"""Limit of headers in an answer. S3 sends about twenty of its own, and two kilobytes of user metadata."""
IDLE_SECONDS: Final = 4.0
"""A connection that was idle for longer is not used again.

S3 closes idle connections after about five seconds. (Authors of several clients saw this; no document says so.) A
request that is sent while S3 closes the connection is lost.
"""
HEAD_SECONDS: Final = 20.0
"""Limit in seconds for the rest of an answer's head after its first bytes. S3 sends it at once; a server that drips it
only occupies a connection."""
ANSWER_SECONDS: Final = 120.0
"""Limit in seconds for a whole answer: enough for a page of half a megabyte at four kilobytes a second."""

LEAST_RATE: Final = 1024.0
"""Bytes a second. A body that arrives more slowly is given up, because it only occupies a connection."""
SLOW_SECONDS: Final = 60.0
"""The seconds of waiting over which the rate of a body is measured."""

METHODS: Final = ("GET", "HEAD", "POST")
"""The methods that an engine sends. Requests with them may safely be sent twice: the only POST is GetCallerIdentity."""

_OWN: Final = 2
"""The number of headers at the end of a request that differ in each request: the signer's date and signature
(Signer.sign)."""
_CACHED: Final = 4

Pairs = tuple[tuple[str, str], ...]


class TransportError(Exception):
    """A request got no complete answer.

    TransportError
    |-- ConnectionLostError   connection not made in time, refused, reset or closed early; TLS or proxy failed
    |-- TransportTimeoutError the next byte, or the whole answer, took too long
    `-- BrokenAnswerError     the answer is not HTTP/1.1, or larger than a limit

    read: number of bytes of the body that had reached the reader's buffer.
    """

    read: int = 0


class ConnectionLostError(TransportError):
    """A connection could not be made in time, or was lost before the end of the answer.

    It was refused, reset or closed early, or TLS or the proxy failed.
    """


class TransportTimeoutError(TransportError):
    """The next bytes, or the whole answer, took longer than the limit."""


class BrokenAnswerError(TransportError):
    """The answer is not HTTP/1.1, or larger than a limit."""


class MinimumRate:
    """Measures whether a body arrives fast enough.

    The body is too slow if fewer than `least` bytes a second come over `window` seconds in which its reader waits.
    """

    __slots__ = ("_bytes", "_least", "_waited", "window")

    def __init__(self, least: float, window: float) -> None:
        self._least = least
        self.window = window
        self.restart()

    def restart(self) -> None:
        """Set all counts to 0, because another body or another window begins."""
        self._waited = 0.0
        self._bytes = 0

    def holds(self, seconds: float, size: int) -> bool:
        """Count `size` bytes that came in `seconds` of waiting.

        Return False if this ends a window that had too few bytes.
        """
        self._waited += seconds
        self._bytes += size
        if self._waited < self.window:
            return True
        enough = self._bytes >= self._least * self._waited
        self.restart()
        return enough


class Server(Struct, frozen=True, kw_only=True):
    """The server to which a transport connects, and the limits for connections and answers.

    connections: largest number of connections at once. tls: None for plain HTTP. proxy: URL of an HTTP proxy.
    largest_body: limit in bytes of a buffered body.

    Times are in seconds. read_timeout: for the next bytes. head_timeout: for the rest of an answer's head after its
    first bytes. answer_timeout: for a whole buffered answer, or for the head of a streamed one. first_answer: for the
    next bytes, in place of read_timeout, until the server has answered for the first time; None for no such limit.
    Streamed bodies do not have it. idle_seconds: a connection that was idle for longer is not used again. least_rate:
    bytes a second; a stream that stays below this rate over slow_seconds of waiting fails with TransportTimeoutError.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    connections: int = 64
    connect_timeout: float = 5.0
    read_timeout: float = 20.0
    head_timeout: float = HEAD_SECONDS
    answer_timeout: float = ANSWER_SECONDS
    first_answer: float | None = None
    idle_seconds: float = IDLE_SECONDS
    largest_body: int = LARGEST_BODY
    least_rate: float = LEAST_RATE
    slow_seconds: float = SLOW_SECONDS
    proxy: str | None = None


class Request(Struct, frozen=True):
    """An HTTP request. target: path and query, percent-encoded as they were signed.

    headers: names and values, in the order in which they are sent, without line breaks. They include Host and, if there
    is a body, its length.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


class Response(Struct, frozen=True):
    """A complete HTTP answer. reason: the text after the status, such as "Not Found". body: b"" for a HEAD.

    headers: by lower-case name. Values have no blanks around them; several values of one name are joined with ", ".
    """

    status: int
    reason: str
    headers: Mapping[bytes, bytes]
    body: bytes


class Transport(Protocol):
    """The interface of a transport for small answers. It keeps connections open, and follows no redirect."""

    async def send(self, request: Request) -> Response:
        """Send a request, and return the complete answer. Raises TransportError."""
        ...

    @property
    def open_connections(self) -> int:
        """The number of idle connections that can take a request; 0 if the transport cannot count them."""
        ...

    def keep_idle(self, connections: int) -> None:
        """Close idle connections until at most `connections` are left. A transport may do nothing here."""
        ...

    async def close(self) -> None: ...


class Stream(Protocol):
    """An HTTP answer whose body is still arriving."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def headers(self) -> Mapping[bytes, bytes]: ...
    async def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with the next bytes of the body, and return their number.

        The number is less than the buffer's length only at the end of the body. Raises TransportError, whose `read` is
        the number of bytes in the buffer.
        """
        ...


class StreamingTransport(Protocol):
    """The interface of a transport for bodies that are too large for memory."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send a request; entering the context waits for the answer's head, leaving it drops the rest of the body.

        Raises TransportError.
        """
        ...

    async def close(self) -> None: ...


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    written = [f"{name}: {value}" for name, value in headers]
    if _broken("".join(written)):
        raise ValueError("a request's headers hold no line break and no NUL")
    written.append("")
    return "\r\n".join(written)


class CommonLines:
    """Encodes the headers that many requests share, and caches the encoded lines.

    The lines contain a session token. Therefore the cache is small, and belongs to one transport: it ends when the
    transport does.
    """

    __slots__ = ("_cached",)

    def __init__(self) -> None:
        self._cached: dict[Pairs, str] = {}

    def __call__(self, headers: Pairs) -> str:
        """Return the headers as lines of HTTP. Raises ValueError for a line break or a NUL."""
        found = self._cached.get(headers)
        if found is None:
            if len(self._cached) >= _CACHED:
                self._cached.clear()
            found = self._cached[headers] = _lines(headers)
        return found


def request_bytes(
    request: Request, lines: Callable[[Pairs], str] = _lines, methods: Collection[str] = METHODS
) -> bytes:
    """Return the bytes of an HTTP/1.1 request.

    lines: encodes the headers that the request shares with others. methods: the allowed methods.

    Raises ValueError for another method, and for text that could change the request: a line break or NUL anywhere, a
    blank or `#` in the target, or a character that is not ASCII.
    """
    method, target, headers = request.method, request.target, request.headers
    if method not in methods:
        raise ValueError(f"a request is one of {', '.join(methods)}, not {method[:20]!r}")
    if target[:1] != "/" or " " in target or "#" in target or _broken(target):
        raise ValueError("a request's target is an encoded path and query, without a line break")
    common, own = headers[:-_OWN], headers[-_OWN:]
    head = f"{method} {target} HTTP/1.1\r\n{lines(common)}{_lines(own)}\r\n".encode("ascii")
    return head + request.body if request.body else head


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text or "\0" in text
