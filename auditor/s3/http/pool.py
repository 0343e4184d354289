"""The auditor's own transports, for nearly all calls: HTTP/1.1 with keep-alive on a pool of connections.

A pool keeps a limited number of connections to one server, and a queue of requests that wait for one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Generic, TypeVar

from msgspec import Struct

from auditor.s3.http.base import CommonLines, ConnectionLostError, Request, Response, Server, request_bytes
from auditor.s3.http.connection import RECEIVED, BufferedConnection, HttpConnection, StaleConnectionError
from auditor.s3.http.streaming import StreamingConnection

_LONGEST_CLOSE: Final = 1.0
"""Limit in seconds of the wait for aborted sockets to close. One or two iterations of the loop are usually enough."""

K = TypeVar("K", bound=HttpConnection)


class Statistics(Struct, frozen=True):
    """The counts of a pool. open: connections that are idle, in use or being made. opened: connections made so far.

    waiting: requests in the queue. resent: requests that were sent twice. peak: the highest `open`.
    """

    open: int
    idle: int
    in_use: int
    waiting: int
    opened: int
    resent: int
    peak: int


class Pool(Generic[K]):
    """A pool of connections to one server.

    A connection counts even while it is being made, so that there are never more connections than the limit.
    """

    def __init__(self, server: Server, made: Callable[[Pool[K], Server], K]) -> None:
        """Make an empty pool. made: makes a connection object, which is not connected yet.

        Raises ValueError for a server behind a proxy.
        """
        if server.proxy is not None:
            raise ValueError("the thin transports do not support a proxy")
        self._server = server
        self._make = made
        self._first_answer = server.first_answer
        self._resent = 0
        self._all: set[K] = set()
        self._idle: deque[K] = deque()
        self._waiting: deque[asyncio.Future[K]] = deque()
        self._sockets = 0
        self._all_closed: asyncio.Future[None] | None = None
        self._is_closed = False
        self._opened = 0
        self._peak = 0

    async def exchange(self, written: bytes, *, head_only: bool) -> tuple[K, Response]:
        """Send a request. Return the connection and the answer (of a streaming connection, the answer's head).

        written: the request as bytes. head_only: True for a HEAD. If the server closed an idle connection just before,
        the request is sent once more on a new connection. That is safe, because the requests change nothing. Raises
        TransportError.
        """
        stale = False
        connection = self.take_idle()
        while True:
            if connection is None:
                connection = await self.take(fresh=stale)
            future = connection.begin(written, head_only=head_only, patience=self._first_answer)
            try:
                answer = await future
                self._first_answer = None
                return connection, answer
            except StaleConnectionError:
                # A new connection is never stale, so this happens only once.
                self._resent += 1
                stale, connection = True, None
            except asyncio.CancelledError:
                connection.abandon(future)
                raise

    def take_idle(self) -> K | None:
        """Take the connection that was idle longest; None if no idle connection can be used.

        Connections that were idle too long are closed. Taking the longest idle one keeps all connections in use, and so
        open. If the last used one came first, the others would expire whenever fewer calls are in flight for some
        seconds, and new ones would be opened soon after. A handshake takes the CPU of ten calls, and closed connections
        leave holes in the heap.
        """
        while self._idle:
            connection = self._idle.popleft()
            if connection.idle_for() <= self._server.idle_seconds:
                return connection
            connection.close()
        return None

    async def take(self, *, fresh: bool = False) -> K:
        """Return an idle connection or a new one; if the limit is reached, wait for one. Raises TransportError.

        fresh: True to get a connection that was never used.
        """
        connection = None if fresh else self.take_idle()
        while True:
            if connection is None:
                connection = self._new() or await self._turn()
            if not connection.alive:
                # The server closed it after it was assigned to this request.
                connection = None
            elif not connection.connected:
                await self._connect(connection)
                return connection
            elif fresh:
                connection = self._replaced(connection)
            else:
                return connection

    async def close(self) -> None:
        """Close every connection. Requests under way or in the queue fail, and so do later requests."""
        self._is_closed = True
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            if not turn.done():
                turn.set_exception(_closed_error())
        for connection in tuple(self._all):
            connection.close()
        if self._sockets:
            if self._all_closed is None:
                self._all_closed = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._all_closed,), timeout=_LONGEST_CLOSE)

    @property
    def open_connections(self) -> int:
        """Number of idle connections that were not idle for more than half of the allowed time."""
        return sum(connection.idle_for() <= self._server.idle_seconds / 2 for connection in self._idle)

    def keep_idle(self, most: int) -> None:
        """Close idle connections until at most `most` are left. The connection that was idle longest is closed
        first.
        """
        for _ in range(len(self._idle) - most):
            self._idle[0].close()

    def statistics(self) -> Statistics:
        return Statistics(
            open=len(self._all),
            idle=len(self._idle),
            in_use=len(self._all) - len(self._idle),
            waiting=len(self._waiting),
            opened=self._opened,
            resent=self._resent,
            peak=self._peak,
        )

    def closed(self) -> None:
        self._sockets -= 1
        if not self._sockets and self._all_closed is not None and not self._all_closed.done():
            self._all_closed.set_result(None)

    def freed(self, connection: K) -> None:
        if not self._waiting or not self._hand_on(connection):
            self._idle.append(connection)

    def gone(self, connection: K) -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._waiting and not self._is_closed:
            place = self._new()
            if place is not None and not self._hand_on(place):
                self._all.discard(place)

    def _hand_on(self, connection: K) -> bool:
        """Give the connection to the first request in the queue. Return False if no request waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return True
        return False

    def _new(self) -> K | None:
        """Return a new connection object, which is not connected yet; None if the limit is reached and all connections
        are in use.

        At the limit, the connection that was idle longest is closed to make room.
        """
        if self._is_closed:
            raise _closed_error()
        if len(self._all) >= self._server.connections:
            if not self._idle:
                return None
            self._idle[0].close()
        connection = self._make(self, self._server)
        self._all.add(connection)
        self._peak = max(self._peak, len(self._all))
        return connection

    def _replaced(self, connection: K) -> K:
        """Close this used connection, and return a new one in its place."""
        self._all.discard(connection)
        new = self._make(self, self._server)
        self._all.add(new)
        connection.close()
        return new

    async def _turn(self) -> K:
        """Wait in the queue until the pool gives this request a connection.

        The connection is an idle one, or a new one in place of a connection that ended.
        """
        turn: asyncio.Future[K] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give_back(turn.result())
            raise

    def _give_back(self, connection: K) -> None:
        """Take back a connection. The pool gave it to a request just when the request was cancelled."""
        if not connection.connected:
            connection.close()
        elif connection.alive:
            self.freed(connection)

    async def _connect(self, connection: K) -> None:
        server = self._server
        name = server.host if server.tls is not None else None
        try:
            async with asyncio.timeout(server.connect_timeout):
                await asyncio.get_running_loop().create_connection(
                    lambda: connection, server.host, server.port, ssl=server.tls, server_hostname=name
                )
        except TimeoutError as error:
            connection.close()
            raise ConnectionLostError(f"no connection within {server.connect_timeout:g} seconds") from error
        except (OSError, UnicodeError) as error:
            connection.close()
            raise ConnectionLostError(f"no connection: {type(error).__name__}: {error}") from error
        except BaseException:
            connection.close()
            raise
        if not connection.alive:
            raise ConnectionLostError("the connection was closed before it was used")
        connection.ready()
        self._sockets += 1
        self._opened += 1


def _closed_error() -> ConnectionLostError:
    return ConnectionLostError("the transport is closed")


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
