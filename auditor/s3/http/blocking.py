"""A transport for threads: HTTP/1.1 with keep-alive, and a few idle connections that all threads share."""

from __future__ import annotations

import select
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from threading import Lock
from typing import Final

from auditor.s3.http.base import (
    BrokenAnswerError,
    ConnectionLostError,
    Request,
    Response,
    Server,
    TransportTimeoutError,
    request_bytes,
)
from auditor.s3.http.response import ResponseReader

METHODS: Final = ("GET", "PUT", "DELETE")
PIECE: Final = 256 * 1024
_EARLY: Final = "the server closed the connection before its answer was complete"


class _StaleError(ConnectionLostError):
    """A used connection was closed before the first byte of the answer, so that the request may be sent again."""


class _BlockingConnection:
    """A connection whose methods block the calling thread.

    They fail if no byte comes for server.read_timeout seconds.
    """

    def __init__(self, server: Server) -> None:
        self._reader = ResponseReader(sys.maxsize)
        self._buffer = memoryview(bytearray(PIECE))
        self._whole: Response | None = None
        self._served = False
        self._idle_since = self._until = 0.0
        self._head_timeout = server.head_timeout
        self._answer_timeout = server.answer_timeout
        try:
            self._socket = socket.create_connection((server.host, server.port), server.connect_timeout)
            try:
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if server.tls is not None:
                    self._socket = server.tls.wrap_socket(
                        self._socket, server_hostname=server.host, suppress_ragged_eofs=False
                    )
                self._socket.settimeout(server.read_timeout)
            except BaseException:
                self._socket.close()
                raise
        except TimeoutError as error:
            raise ConnectionLostError(f"no connection within {server.connect_timeout:g} seconds") from error
        except (OSError, UnicodeError) as error:
            raise ConnectionLostError(f"no connection: {type(error).__name__}: {error}") from error

    def begin(self, written: bytes, content: BufferedReader | None) -> None:
        """Send the bytes `written`, then the file `content`.

        If the server ends the connection early, the rest is not sent.
        """
        self._reader.expect(head_only=False)
        self._whole = None
        self._until = time.monotonic() + self._answer_timeout
        try:
            self._socket.sendall(written)
            while content is not None and (piece := content.read(PIECE)):
                self._socket.sendall(piece)
        except (ssl.SSLError, ConnectionError):
            return  # the answer, if there is one, says why
        except TimeoutError as error:
            raise TransportTimeoutError("the request could not be sent in time") from error
        except OSError as error:
            raise ConnectionLostError(f"the connection was lost: {type(error).__name__}: {error}") from error

    def status(self) -> int:
        """Read until the answer's head is complete, and return the status.

        Its rest has head_timeout after its first bytes.
        """
        until: float | None = None
        while self._whole is None and not self._reader.status:
            if until is not None and time.monotonic() > until:
                raise TransportTimeoutError(f"the head was not complete {self._head_timeout:g} seconds after it began")
            self._whole = self._read()
            until = time.monotonic() + self._head_timeout if until is None else until
        return self._reader.status if self._whole is None else self._whole.status

    def pieces(self) -> Iterator[bytes]:
        """Yield the body of the answer in pieces. Call status() first."""
        while self._whole is None:
            yield from self._reader.taken()
            self._whole = self._read()
        yield self._whole.body

    def whole(self, largest: int) -> Response:
        """Return the complete answer. Call status() first. largest: limit of the body in bytes."""
        body = bytearray()
        for piece in self.pieces():
            body += piece
            if len(body) > largest:
                raise BrokenAnswerError("the body is larger than the limit")
            if time.monotonic() > self._until:
                raise TransportTimeoutError(f"the answer was not complete after {self._answer_timeout:g} seconds")
        assert self._whole is not None
        return Response(self._whole.status, self._whole.reason, self._whole.headers, bytes(body))

    def _read(self) -> Response | None:
        """Read more bytes from the socket. Return the answer if these bytes complete it, else None."""
        try:
            count = self._socket.recv_into(self._buffer)
        except TimeoutError as error:
            raise TransportTimeoutError(f"no byte came for {self._socket.gettimeout():g} seconds") from error
        except (ssl.SSLError, OSError) as error:
            raise self._lost(f"the connection was lost: {type(error).__name__}: {error}") from error
        if count:
            return self._reader.feed(self._buffer[:count])
        answer = self._reader.end() if self._reader.started else None
        if answer is None:
            raise self._lost(_EARLY)
        self._reader.reusable = False
        return answer

    def _lost(self, why: str) -> ConnectionLostError:
        return _StaleError(why) if self._served and not self._reader.started else ConnectionLostError(why)

    def kept(self) -> bool:
        """Mark the connection as idle from now on. Return True if the connection can take another request."""
        self._served, self._idle_since = True, time.monotonic()
        return self._reader.reusable

    def usable(self, idle_seconds: float) -> bool:
        """True if the connection was not idle for more than `idle_seconds`, and the server has not closed it."""
        if time.monotonic() - self._idle_since > idle_seconds:
            return False
        watch = select.poll()
        watch.register(self._socket, select.POLLIN)
        return not watch.poll(0)

    def close(self) -> None:
        self._socket.close()


class BlockingTransport:
    """A transport for threads. Its methods block, and raise TransportError."""

    def __init__(self, server: Server) -> None:
        """Make the transport. It connects at the first request."""
        self._server = server
        self._lock = Lock()
        self._idle: list[_BlockingConnection] = []
        self._closed = False

    def send(self, request: Request, content: BufferedReader | None = None) -> Response:
        """Send a request, and return the complete answer. content: a file to send after the request."""
        return self._whole(self._begun(request, content))

    def stream(self, request: Request) -> Response | Iterator[bytes]:
        """Send a request. Return the body in pieces for status 200, the complete answer for any other status."""
        connection = self._begun(request, None)
        return self._pieces(connection) if connection.status() == 200 else self._whole(connection)

    def _whole(self, connection: _BlockingConnection) -> Response:
        with self._used(connection):
            return connection.whole(self._server.largest_body)

    def close(self) -> None:
        """Close the idle connections, and from now on each connection after its answer."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _pieces(self, connection: _BlockingConnection) -> Iterator[bytes]:
        with self._used(connection):
            yield from connection.pieces()

    @contextmanager
    def _used(self, connection: _BlockingConnection) -> Iterator[None]:
        """Let the `with` block read the answer. Keep the connection after it; close it if the block fails."""
        try:
            yield
        except BaseException:
            connection.close()
            raise
        self._free(connection)

    def _begun(self, request: Request, content: BufferedReader | None) -> _BlockingConnection:
        """Send the request, wait for the answer's head, and return the connection that reads the body."""
        written = request_bytes(request, methods=METHODS)
        connection = self._taken() or _BlockingConnection(self._server)
        while True:
            try:
                connection.begin(written, content)
                connection.status()
            except _StaleError:
                connection.close()
                if content is not None:
                    content.seek(0)
                connection = _BlockingConnection(self._server)
            except BaseException:
                connection.close()
                raise
            else:
                return connection

    def _taken(self) -> _BlockingConnection | None:
        """Take the idle connection that was used last; None if none can be used."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or connection.usable(self._server.idle_seconds):
                return connection
            connection.close()

    def _free(self, connection: _BlockingConnection) -> None:
        with self._lock:
            if kept := connection.kept() and not self._closed:
                self._idle.append(connection)
        if not kept:
            connection.close()
