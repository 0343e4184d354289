"""A connection that is kept: a request out, word to its owner when it is free and when it is gone; what comes in is
the business of its two kinds."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, Protocol, Self, TypeVar, cast

from auditor.s3.http.base import ConnectionLostError, Response, Server, TransportError, TransportTimeoutError
from auditor.s3.http.response import ResponseReader

CLOSED_EARLY: Final = "the server closed the connection before its answer was whole"

K_contra = TypeVar("K_contra", contravariant=True)


class StaleConnectionError(ConnectionLostError):
    """A connection that had served before was gone before a byte of this answer came: it may be sent again."""


class ConnectionOwner(Protocol[K_contra]):
    """Who keeps connections, and is told of each once when it is `gone`, and once when it is `closed`."""

    def closed(self) -> None:
        """The socket of a connection that had been `connected` is no more."""
        ...

    def freed(self, connection: K_contra) -> None:
        """It can take the next request."""
        ...

    def gone(self, connection: K_contra) -> None:
        """It never can again."""
        ...


class HttpConnection(asyncio.BaseProtocol):
    """From `connect` to `gone`, one request after another.

    Pauses in writing are not heeded: one request of some kilobytes is in the transport's buffer at most, which holds
    64 KiB before it asks for a pause.
    """

    __slots__ = (
        "_answer_timeout",
        "_deadline",
        "_future",
        "_idle_since",
        "_last",
        "_loop",
        "_owner",
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
        self._answer_timeout = server.answer_timeout
        self._loop = asyncio.get_running_loop()
        self._reader = ResponseReader(server.largest_body)
        self._future: asyncio.Future[Response] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._write: Callable[[bytes], None] = _unwritable
        self._served = False
        self._idle_since = self._deadline = self._last = 0.0
        self.connected = False
        self.alive = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self.alive:
            cast(asyncio.Transport, transport).abort()
            return
        self._transport = cast(asyncio.Transport, transport)
        self._write = self._transport.write

    def ready(self) -> None:
        """The loop has handed it over. It may not, after `connection_made`; then `connection_lost` may never come."""
        self.connected = True
        self._idle_since = self._loop.time()

    def begin(self, request: bytes, *, head_only: bool) -> asyncio.Future[Response]:
        """Send a request; the connection must be alive and idle. The future fails with TransportError."""
        loop = self._loop
        future = self._future = loop.create_future()
        self._reader.expect(head_only=head_only)
        now = loop.time()
        self._deadline = now + self._read_timeout
        self._last = now + self._answer_timeout
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._check_time)
        self._write(request)
        return future

    def idle_for(self) -> float:
        """Seconds since its last answer."""
        return self._loop.time() - self._idle_since

    def abandon(self, future: asyncio.Future[Response]) -> None:
        """Nobody waits any longer: what is still on its way is thrown away, with the connection."""
        if self._future is future:
            self.close()
        elif future.done() and not future.cancelled():
            future.exception()

    def close(self, error: TransportError | None = None) -> None:
        """Close at once; the request under way, if any, fails."""
        if self._transport is not None:
            # Not `close`: it would wait for a TLS peer's farewell, and hold the socket for as long.
            self._transport.abort()
        self._end(error or ConnectionLostError("the connection was closed here"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(CLOSED_EARLY if exc is None else f"the connection was lost: {type(exc).__name__}: {exc}")
        # It holds its protocol, which is this: the two would keep a quarter of a mebibyte of TLS buffers alive until
        # the collector comes by, which in an audit is hardly ever.
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
        """The connection has ended, and whoever waited for a head knows."""

    def _check_time(self) -> None:
        """One timer for many requests: it looks again at the deadline of the request then under way."""
        self._timer = None
        if self._future is None:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_time)
            return
        if self._deadline == self._last:
            self.close(TransportTimeoutError(f"the answer was not whole after {self._answer_timeout:g} seconds"))
        else:
            self.close(TransportTimeoutError(f"no byte came for {self._read_timeout:g} seconds"))


def _unwritable(_: bytes) -> None:
    """What a connection without a socket writes with."""
    raise ConnectionLostError("the connection is closed")
