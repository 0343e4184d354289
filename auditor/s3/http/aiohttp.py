"""The transport on aiohttp, for connections through a proxy. Tests compare the auditor's own transports with it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any, Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from auditor.s3.http.base import (
    LARGEST_BODY,
    LARGEST_HEAD,
    MOST_HEADERS,
    BrokenAnswerError,
    ConnectionLostError,
    MinimumRate,
    Request,
    Response,
    Server,
    TransportError,
    TransportTimeoutError,
    request_bytes,
)

NOT_OURS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add by itself. It must not, because the headers are signed."""
PATIENCE: Final = 1.25
"""Our timeout for the next bytes is aiohttp's timeout, multiplied by this factor.

If a chunked body is malformed after its head, aiohttp (3.14) stops its own timer and waits for ever; our timeout ends
that wait. For a silent server, aiohttp's own timeout comes first."""


class AiohttpTransport:
    """A transport on one aiohttp session. Make it while the event loop runs. resent: number of requests that were sent
    twice.

    The auditor's own transports send a request again only if a used connection closed before the first byte of the
    answer. aiohttp would send it again after any connection that ended before the answer's head, even a new one.
    Therefore a middleware of this class decides first, by the auditor's rule. The middleware cannot see three things:
    an interim answer before the end, a part of a head before a reset, and whether the second connection is new.
    """

    def __init__(self, server: Server) -> None:
        self._origin = f"{'http' if server.tls is None else 'https'}://{_bracketed(server.host)}:{server.port}"
        self._proxy = server.proxy
        self._read_limit = server.read_timeout * PATIENCE
        self._limit = server.answer_timeout
        self._head_limit = min(server.answer_timeout, server.read_timeout + server.head_timeout)
        self._slowest = server.least_rate, server.slow_seconds
        self.resent = 0
        watch = aiohttp.TraceConfig()
        watch.on_connection_reuseconn.append(self._reused)
        watch.on_connection_create_start.append(self._timed)
        watch.on_connection_create_end.append(_note_new_connection)
        watch.on_request_headers_sent.append(self._sent)
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=server.connect_timeout, sock_read=server.read_timeout, ceil_threshold=3600
        )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=server.connections, ssl=server.tls or True, keepalive_timeout=server.idle_seconds
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=NOT_OURS,
            timeout=timeout,
            max_line_size=LARGEST_HEAD,
            max_field_size=LARGEST_HEAD,
            max_headers=MOST_HEADERS,
            trace_configs=[watch],
        )

    @property
    def open_connections(self) -> int:
        return 0  # aiohttp does not count them

    def keep_idle(self, connections: int) -> None:
        pass  # aiohttp closes idle connections itself

    async def send(self, request: Request) -> Response:
        """Send a request, and return the complete answer.

        Raises TransportError, or ValueError for forbidden characters.
        """
        async with self.stream(request) as stream:
            with _errors():
                async with asyncio.timeout(self._limit):
                    body = await stream.whole() if request.method == "GET" else b""
            return Response(stream.status, stream.reason, stream.headers, body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AiohttpStream]:
        """Send a request, and open its answer while the body arrives.

        If the caller leaves the `with` block before the end of the body, the connection is closed.
        """
        request_bytes(request)
        limit = asyncio.timeout(None)
        connection = SimpleNamespace(reused=False, limit=limit)
        with _errors():
            async with limit:
                response = await self._session.request(
                    request.method,
                    URL(self._origin + request.target, encoded=True),
                    headers=request.headers,
                    data=request.body or None,
                    allow_redirects=False,
                    proxy=self._proxy,
                    trace_request_ctx=connection,
                    middlewares=(self._sending_again(connection),),
                )
        try:
            with _errors():
                stream = AiohttpStream(response, self._read_limit, MinimumRate(*self._slowest))
            yield stream
        finally:
            response.release()
            await response.wait_for_close()

    async def close(self) -> None:
        """Close every connection. Requests under way fail."""
        await self._session.close()

    async def _reused(self, session: aiohttp.ClientSession, context: SimpleNamespace, _: object) -> None:
        context.trace_request_ctx.reused = True
        await self._timed(session, context, _)

    async def _timed(self, _: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        """Start the time limit for the head of an answer, when its request gets a connection or begins to make one.

        aiohttp itself has no limit for a proxy's answer or for a slow head.
        """
        context.trace_request_ctx.limit.reschedule(asyncio.get_running_loop().time() + self._limit)

    async def _sent(self, _: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        """Limit the time for the head of an answer anew once the request was sent.

        aiohttp does not tell when the head begins, so the limit is the sum of the times for its beginning and its rest.
        """
        context.trace_request_ctx.limit.reschedule(asyncio.get_running_loop().time() + self._head_limit)

    def _sending_again(self, connection: SimpleNamespace) -> aiohttp.ClientMiddlewareType:
        async def middleware(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> Any:
            with _errors():
                try:
                    return await handler(request)
                except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
                    if self._session.closed or not connection.reused or not _before_any_byte(error):
                        raise
                self.resent += 1
                return await handler(request)

        return middleware


class AiohttpStream:
    """An answer of aiohttp whose body is still arriving (a Stream). Raises TransportError for a malformed head."""

    def __init__(self, response: aiohttp.ClientResponse, read_limit: float, rate: MinimumRate) -> None:
        self.status = response.status
        if not 200 <= self.status <= 599:
            raise BrokenAnswerError(f"status {self.status} is not an answer")
        if response.version not in (aiohttp.HttpVersion10, aiohttp.HttpVersion11):
            raise BrokenAnswerError("what came is not HTTP/1.1")
        self.reason = (response.reason or "").encode("utf-8", "surrogateescape").decode("latin-1")
        self.headers: Mapping[bytes, bytes] = _joined(response.raw_headers)
        if self.headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise BrokenAnswerError("a transfer encoding that is not chunked")
        self._content = response.content
        self._read_limit = read_limit
        self._rate = rate

    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer with the next bytes of the body, and return their number (see Stream.readinto())."""
        count, size, clock = 0, len(buffer), asyncio.get_running_loop().time
        begun = clock()
        try:
            while count < size and (piece := await self._piece(size - count)):
                buffer[count : count + len(piece)] = piece
                count += len(piece)
                before, begun = begun, clock()
                if not self._rate.holds(begun - before, len(piece)):
                    raise TransportTimeoutError(f"hardly a byte came for {self._rate.window:g} seconds")
        except TransportError as error:
            error.read = count
            raise
        return count

    async def whole(self) -> bytes:
        """Return the whole body. Raises TransportError, also if it is larger than LARGEST_BODY."""
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > LARGEST_BODY and self.status not in (204, 304):
            raise BrokenAnswerError("the body is larger than the limit")
        pieces: list[bytes] = []
        size = 0
        while piece := await self._piece(LARGEST_BODY):
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST_BODY:
                raise BrokenAnswerError("the body is larger than the limit")
        return b"".join(pieces)

    async def _piece(self, size: int) -> bytes:
        try:
            async with asyncio.timeout(self._read_limit):
                with _errors():
                    return await self._content.read(size)
        except TimeoutError as error:
            if isinstance(self._content.exception(), TimeoutError):  # both limits ended at once, on a busy machine
                raise TransportTimeoutError("the rest of the body did not arrive in time") from error
            raise BrokenAnswerError("the body ended early or is malformed") from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _joined(raw: tuple[tuple[bytes, bytes], ...]) -> dict[bytes, bytes]:
    joined: dict[bytes, bytes] = {}
    for name, value in raw:
        name, value = name.lower(), value.strip(b" \t")
        joined[name] = joined[name] + b", " + value if name in joined else value
    return joined


def _before_any_byte(error: aiohttp.ClientError) -> bool:
    """True if the error means that a connection was made, but closed before the first byte of the answer."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    return not isinstance(error, aiohttp.ServerDisconnectedError) or isinstance(error.message, str)


async def _note_new_connection(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.reused = False


@contextmanager
def _errors() -> Iterator[None]:
    """Convert aiohttp's errors in this `with` block to TransportError."""
    try:
        yield
    except TransportError:
        raise
    except aiohttp.ConnectionTimeoutError as error:
        raise ConnectionLostError(f"no connection: {error}") from error
    except TimeoutError as error:
        raise TransportTimeoutError(str(error) or "it took too long") from error
    except (aiohttp.ClientError, HttpProcessingError, ssl.SSLError, OSError, UnicodeError) as error:
        broken = isinstance(error, (aiohttp.ClientResponseError, HttpProcessingError))
        kind = (
            BrokenAnswerError if broken and not isinstance(error, aiohttp.ClientHttpProxyError) else ConnectionLostError
        )
        raise kind(f"{type(error).__name__}: {error}"[:500]) from error
