"""The keep-alive connections: the base class, which sends requests, and the one that reads each answer into memory.

A connection tells its pool when it is idle or closed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, Protocol, Self, TypeVar, cast

from auditor.s3.http.base import (
    BrokenAnswerError,
    ConnectionLostError,
    Response,
    Server,
    TransportError,
    TransportTimeoutError,
)
from auditor.s3.http.response import ResponseReader

CLOSED_EARLY: Final = "the server closed the connection before its answer was complete"

_PIECE: Final = 64 * 1024

K_contra = TypeVar("K_contra", contravariant=True)


class StaleConnectionError(ConnectionLostError):
    """A used connection was closed before the first byte of the next answer: the request may be sent again."""


class ConnectionOwner(Protocol[K_contra]):
    """The owner of connections, such as a pool, to which they report when they are idle or closed.

    Each connection calls gone() once and, if it was connected, closed() once.
    """

    def closed(self) -> None:
        """Take note that the socket of a connection is closed."""
        ...

    def freed(self, connection: K_contra) -> None:
        """Take note that the connection is idle, and can take the next request."""
        ...

    def gone(self, connection: K_contra) -> None:
        """Take note that the connection can take no more requests."""
        ...


class HttpConnection(asyncio.BaseProtocol):
    """A connection that sends one request after the other, until it is closed.

    It ignores asyncio's pause_writing. asyncio calls that at 64 KiB of unsent bytes, and a request has a few kilobytes.
    """

    __slots__ = (
        "_answer_deadline",
        "_answer_timeout",
        "_deadline",
        "_future",
        "_head_begun",
        "_head_timeout",
        "_idle_since",
        "_loop",
        "_owner",
        "_patience",
        "_read_timeout",
        "_reader",
        "_served",
        "_timer",
        "_transport",
        "_write",
        "alive",
        "connected",
    )

    def __init__(self, owner: ConnectionOwner[Self], server: Server) -> None:
        self._owner = owner
        self._read_timeout = min(server.read_timeout, server.answer_timeout)
        self._head_timeout = server.head_timeout
        self._answer_timeout = server.answer_timeout
        self._loop = asyncio.get_running_loop()
        self._reader = ResponseReader(server.largest_body)
        self._future: asyncio.Future[Response] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._write: Callable[[bytes], None] = _unwritable
        self._served = self._head_begun = False
        self._idle_since = self._deadline = self._answer_deadline = 0.0
        self._patience = self._read_timeout
        self.connected = False
        self.alive = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self.alive:
            cast(asyncio.Transport, transport).abort()
            return
        self._transport = cast(asyncio.Transport, transport)
        self._write = self._transport.write

    def ready(self) -> None:
        """Record that asyncio's create_connection() has succeeded, so that asyncio is now sure to call
        connection_lost().
        """
        self.connected = True
        self._idle_since = self._loop.time()

    def begin(self, request: bytes, *, head_only: bool, patience: float | None = None) -> asyncio.Future[Response]:
        """Send a request on this idle, open connection.

        Return a future of the answer, or of a TransportError. head_only: True for a HEAD. patience: seconds until the
        first bytes of the answer; None for the server's read_timeout.
        """
        loop = self._loop
        future = self._future = loop.create_future()
        self._reader.expect(head_only=head_only)
        self._head_begun = False
        now = loop.time()
        self._patience = self._read_timeout if patience is None else min(patience, self._answer_timeout)
        self._deadline = now + self._patience
        self._answer_deadline = now + self._answer_timeout
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._check_time)
        self._write(request)
        return future

    def _wait_for_more(self) -> None:
        """Set the deadline for the bytes after those that came. The head of an answer has one deadline, which its first
        bytes set: further bytes do not move it.
        """
        if self._reader.status or not self._head_begun:
            self._patience = self._read_timeout if self._reader.status else self._head_timeout
            self._head_begun = True
            self._deadline = min(self._loop.time() + self._patience, self._answer_deadline)
            if self._timer is not None and self._timer.when() > self._deadline:
                self._timer.cancel()
                self._timer = self._loop.call_at(self._deadline, self._check_time)

    def idle_for(self) -> float:
        """Return the seconds since the last answer."""
        return self._loop.time() - self._idle_since

    def abandon(self, future: asyncio.Future[Response]) -> None:
        """Give up the request of this future. If its answer is not complete, close the connection."""
        if self._future is future:
            self.close()
        elif future.done() and not future.cancelled():
            future.exception()

    def close(self, error: TransportError | None = None) -> None:
        """Close the connection at once. A request under way fails with `error` (None: ConnectionLostError)."""
        if self._transport is not None:
            # Not close(), which keeps the socket until the peer's close_notify arrives.
            self._transport.abort()
        self._end(error or ConnectionLostError("the connection was closed here"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(CLOSED_EARLY if exc is None else f"the connection was lost: {type(exc).__name__}: {exc}")
        # The transport refers to this protocol. This reference cycle would keep 256 KiB of TLS buffers until the
        # garbage collector runs, which is rare in an audit.
        self._transport, self._write = None, _unwritable
        if self.connected:
            self._owner.closed()

    def _tls(self) -> ssl.SSLObject | None:
        found: ssl.SSLObject | None = None
        if self._transport is not None:
            found = self._transport.get_extra_info("ssl_object")
        return found

    def _free(self: Self) -> None:
        self._served = True
        self._idle_since = self._loop.time()
        self._owner.freed(self)

    def _lost(self, why: str) -> None:
        stale = self._served and not self._reader.started
        self._end(StaleConnectionError(why) if stale else ConnectionLostError(why))

    def _end(self: Self, error: TransportError) -> None:
        if not self.alive:
            return
        self.alive = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_exception(error)
        self._failed(error)
        self._owner.gone(self)

    def _failed(self, error: TransportError) -> None:
        """Let a subclass clean up after the end of the connection. The future of the request is done by then."""

    def _check_time(self) -> None:
        """Close the connection if the present request has passed its deadline. Otherwise set the timer to that
        deadline.

        One timer serves many requests: a new request does not move the timer. Only this method moves it, when it fires.
        """
        self._timer = None
        if self._future is None:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_time)
            return
        if self._deadline == self._answer_deadline:
            self.close(TransportTimeoutError(f"the answer was not complete after {self._answer_timeout:g} seconds"))
        elif self._head_begun and not self._reader.status:
            self.close(TransportTimeoutError(f"the head was not complete {self._patience:g} seconds after it began"))
        else:
            self.close(TransportTimeoutError(f"no byte came for {self._patience:g} seconds"))


RECEIVED: Final = 64 * 1024
"""Bytes of the buffer that receives from the socket."""


class BufferedConnection(HttpConnection, asyncio.BufferedProtocol):
    """A connection whose answers are buffered. It never pauses reading, because the size of an answer is limited.

    received: the buffer for incoming bytes; None to allocate one for this connection. All connections of a transport
    can share one buffer, because each parses its bytes at once. If connections had no such buffer, the event loop
    (uvloop 0.23) would allocate 256 KiB for each answer, and memory would grow.
    """

    __slots__ = ("_received",)

    def __init__(self, owner: ConnectionOwner[Self], server: Server, received: memoryview | None = None) -> None:
        super().__init__(owner, server)
        self._received = memoryview(bytearray(RECEIVED)) if received is None else received

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        future = self._future
        if future is None:
            # The server sent bytes without a request. They must not count as the next answer.
            self.close()
            return
        reader = self._reader
        try:
            answer = reader.feed(self._received[:nbytes])
        except BrokenAnswerError as error:
            self.close(error)
            return
        if answer is None:
            self._wait_for_more()
            return
        self._future = None
        if not future.done():
            future.set_result(answer)
        if reader.reusable:
            self._free()
        else:
            self.close()

    def eof_received(self) -> None:
        """Complete the answer, if only the end of the connection ends its body.

        asyncio then closes the socket.
        """
        future = self._future
        if future is not None and not future.done() and self._server_ended_it():
            answer = self._reader.end()
            if answer is not None:
                self._future = None
                future.set_result(answer)
        self._lost(CLOSED_EARLY)

    def _server_ended_it(self) -> bool:
        """Return True if the server itself ended the connection.

        With TLS, only a close_notify proves this, because anyone on the network can close the TCP connection below TLS.
        """
        tls = self._tls()
        if tls is None:
            return True
        pieces, farewell = drain_tls(tls, 1)
        return farewell and not pieces


def drain_tls(tls: ssl.SSLObject, most: int) -> tuple[list[bytes], bool]:
    """Return at most `most` bytes that are left in TLS after the end of the connection, in pieces, and True if a
    close_notify follows them. Without a close_notify the body may be cut, which anyone on the network can do.
    """
    pieces: list[bytes] = []
    try:
        while most > 0 and (piece := tls.read(min(most, _PIECE))):
            pieces.append(piece)
            most -= len(piece)
    except ssl.SSLZeroReturnError:
        return pieces, True
    except ssl.SSLError:
        return pieces, False
    return pieces, most > 0


def _unwritable(_: bytes) -> None:
    """Raise ConnectionLostError. While there is no socket, this function stands in for the socket's write()."""
    raise ConnectionLostError("the connection is closed")
