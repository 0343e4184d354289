"""The auditor's own transports, for nearly all calls: HTTP/1.1 with keep-alive on a pool of connections."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from auditor.s3.http.base import Request, Response, Server
from auditor.s3.http.connection import RECEIVED, BufferedConnection
from auditor.s3.http.pool import Pool
from auditor.s3.http.request import CommonLines, request_bytes
from auditor.s3.http.streaming import StreamingConnection


class HttpTransport(Pool[BufferedConnection]):
    """The transport for small answers. A request takes one write and one future, no task and no timer.

    It buffers each body, and decompresses nothing. ThinStreams is for large bodies, AiohttpTransport for proxies.
    """

    def __init__(self, server: Server) -> None:
        """Make the transport; it connects at the first request. Raises ValueError for a server behind a proxy."""
        super().__init__(server, partial(BufferedConnection, received=memoryview(bytearray(RECEIVED))))
        self._lines = CommonLines()

    async def send(self, request: Request) -> Response:
        """Send a request, and return the complete answer.

        Raises TransportError, or ValueError for forbidden characters.
        """
        written = request_bytes(request, self._lines)
        _, answer = await self.exchange(written, head_only=request.method == "HEAD")
        return answer


class ThinStreams(Pool[StreamingConnection]):
    """The transport for large bodies, which it receives straight into the reader's buffer.

    It decompresses nothing, and supports no proxy.
    """

    def __init__(self, server: Server) -> None:
        """Make the transport; it connects at the first request. Raises ValueError for a server behind a proxy."""
        super().__init__(server, StreamingConnection)

    def stream(self, request: Request) -> ThinStream:
        """Return a context manager that sends the request, and gives the answer while its body arrives.

        Entering the context raises TransportError, or ValueError for forbidden characters in the request.
        """
        return ThinStream(self, request)


class ThinStream:
    """Sends one request, and reads the body of its answer. A context manager, for one use."""

    __slots__ = ("_connection", "_pool", "_request", "headers", "readinto", "reason", "status")

    def __init__(self, pool: Pool[StreamingConnection], request: Request) -> None:
        self._pool = pool
        self._request = request
        self.status: int
        self.reason: str
        self.headers: Mapping[bytes, bytes]

    async def __aenter__(self) -> ThinStream:
        request = self._request
        self._connection, answer = await self._pool.exchange(request_bytes(request), head_only=request.method == "HEAD")
        self.status, self.reason, self.headers = answer.status, answer.reason, answer.headers
        self.readinto = self._connection.readinto
        return self

    async def __aexit__(self, *error: object) -> None:
        self._connection.release()
