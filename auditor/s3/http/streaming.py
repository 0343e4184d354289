"""A connection that reads bodies from the socket, or from TLS, straight into the caller's buffer."""

from __future__ import annotations

import asyncio
import enum
import sys
from typing import Final, Self

from auditor.s3.http.base import BrokenAnswerError, Response, Server, TransportError, TransportTimeoutError
from auditor.s3.http.connection import CLOSED_EARLY, ConnectionOwner, HttpConnection
from auditor.s3.http.delivery import Delivery, Flow
from auditor.s3.http.response import EmptyLine, ResponseReader
from auditor.s3.http.tls import drain_tls

HEAD_SIZE: Final = 32 * 1024
"""Bytes of the connection's own buffer. It is for the head of a response, and a small body after it."""

DRAINED: Final = 64 * 1024
"""Limit in bytes for the rest of a released body. The connection reads and discards a rest up to this size.

For a longer rest, a new connection costs less."""

_DRAIN_SECONDS: Final = 2.0
_UNKNOWN: Final = sys.maxsize
_BODILESS: Final = (204, 304)
_DISCARDED: Final = memoryview(bytearray(DRAINED))
"""The shared buffer for discarded bytes."""


class Phase(enum.Enum):
    """The part of the answer that the connection reads at present."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    WHOLE = enum.auto()
    """The whole body arrived; its reader may not have taken it yet."""
    DRAIN = enum.auto()
    """The reader released the body; the connection discards the rest."""


class StreamingConnection(HttpConnection, asyncio.BufferedProtocol):
    """A connection for large bodies. Call begin() for an answer's head, readinto() until it returns 0, then release().

    While no caller waits in readinto(), reading is paused: then only the bytes that came with the head are in memory.
    TLS and the kernel buffer up to 256 KiB each.
    """

    __slots__ = (
        "_bodiless",
        "_chunked",
        "_delivery",
        "_empty_line",
        "_error",
        "_flow",
        "_head",
        "_left",
        "_paused",
        "_phase",
        "_until_close",
        "_waiting",
    )

    def __init__(self, owner: ConnectionOwner[Self], server: Server) -> None:
        super().__init__(owner, server)
        self._reader = ResponseReader(sys.maxsize)
        self._flow = Flow(server.least_rate, server.slow_seconds)
        self._head = bytearray(HEAD_SIZE)
        self._delivery = Delivery()
        self._empty_line = EmptyLine()
        self._waiting: asyncio.Future[int] | None = None
        self._error: TransportError | None = None
        self._phase = Phase.IDLE
        self._bodiless = self._chunked = self._until_close = self._paused = False
        self._left = 0

    def begin(self, request: bytes, *, head_only: bool, patience: float | None = None) -> asyncio.Future[Response]:
        """Send a request. Return a future of the answer's head (status, headers).

        head_only, patience: see HttpConnection.begin().
        """
        self._phase = Phase.HEAD
        self._empty_line.restart()
        self._bodiless = head_only
        # The parser reads the head only; it decodes a body only if that is chunked.
        return super().begin(request, head_only=True, patience=patience)

    def abandon(self, future: asyncio.Future[Response]) -> None:
        super().abandon(future)
        if self._phase in (Phase.BODY, Phase.WHOLE):
            self.release()

    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer with the next bytes of the body, and return their number (see Stream.readinto())."""
        count = self._delivery.take(buffer)
        if count == len(buffer) or self._phase is Phase.WHOLE:
            return count
        if self._error is not None:
            error = type(self._error)(*self._error.args)
            error.read = count
            raise error
        self._delivery.open(buffer, count)
        waiting: asyncio.Future[int] = self._loop.create_future()
        self._waiting = waiting
        now = self._loop.time()
        self._flow.wait(now, count)
        self._deadline = now + self._read_timeout
        self._watch()
        self._resume()
        try:
            return await waiting
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._delivery.close()
            self._waiting = None

    def release(self) -> None:
        """End the use of the body. The connection stays open for the next request, unless much of the body is left."""
        self._delivery.forget()
        if not self.alive:
            return
        if self._phase is Phase.WHOLE and self._reader.reusable:
            self._free()
        elif self._phase is Phase.BODY and self._reader.reusable and not self._chunked and self._left <= DRAINED:
            self._phase = Phase.DRAIN
            self._deadline = self._loop.time() + min(_DRAIN_SECONDS, self._read_timeout)
            self._watch()
            self._resume()
        else:
            self.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes.

        It is a memoryview, because asyncio's TLS (3.11) would fill only a copy of a bytearray.
        """
        phase = self._phase
        if phase is Phase.BODY and not self._chunked:
            rest = self._delivery.rest(self._left)
            if rest is not None:
                return rest
        if phase is Phase.HEAD or phase is Phase.BODY:
            return memoryview(self._head)
        return _DISCARDED[: self._left] if phase is Phase.DRAIN else _DISCARDED

    def buffer_updated(self, nbytes: int) -> None:
        phase = self._phase
        if phase is Phase.BODY:
            if self._chunked:
                self._arrived(memoryview(self._head)[:nbytes])
            else:
                self._delivery.position += nbytes
                self._left -= nbytes
            self._progress()
        elif phase is Phase.HEAD:
            self._read_head(nbytes)
        elif phase is Phase.DRAIN:
            self._left -= nbytes
            if not self._left:
                self._free()
        elif phase is Phase.WHOLE:
            # The server sent bytes after the response.
            self._reader.reusable = False
            self._pause()
        else:
            self.close()

    def eof_received(self) -> None:
        """Deliver the rest of the body when the server ends the connection. asyncio then closes the socket."""
        self._salvage(plain=True)
        self._lost(CLOSED_EARLY)

    def connection_lost(self, exc: Exception | None) -> None:
        self._salvage(plain=False)
        super().connection_lost(exc)

    def _read_head(self, size: int) -> None:
        view = memoryview(self._head)
        start = 0
        try:
            while start < size:
                found = self._empty_line.end(self._head, start, size)
                end = found or size
                answer = self._reader.feed(view[start:end])
                if answer is not None:
                    if not found:
                        raise BrokenAnswerError("the headers do not end with an empty line")
                    self._begin_body(answer, view[end:size])
                    return
                start = end
        except BrokenAnswerError as error:
            self.close(error)
            return
        self._wait_for_more()

    def _begin_body(self, answer: Response, rest: memoryview) -> None:
        bodiless = self._bodiless or answer.status in _BODILESS
        length = b"0" if bodiless else answer.headers.get(b"content-length")
        self._chunked = b"transfer-encoding" in answer.headers and not bodiless
        self._left = _UNKNOWN if length is None else int(length)
        self._until_close = length is None and not self._chunked
        if self._until_close:
            self._reader.reusable = False
        self._flow.restart()
        self._phase = Phase.BODY
        if len(rest) > self._left:
            self._reader.reusable, rest = False, rest[: self._left]
        if rest:
            self._arrived(rest)
        future, self._future = self._future, None
        if not self.alive:
            return
        if self._left:
            self._pause()
        else:
            self._phase = Phase.WHOLE
        if future is not None and not future.done():
            future.set_result(answer)

    def _arrived(self, data: memoryview) -> None:
        """Deliver bytes of a body to its reader; of a chunked body, deliver the decoded content.

        data: the bytes. They must not change later, unless the body is chunked.
        """
        if not self._chunked:
            self._left -= len(data)
            self._delivery.hand(data)
            return
        try:
            answer = self._reader.feed(data)
        except BrokenAnswerError as error:
            self.close(error)
            return
        for piece in [answer.body] if answer is not None else self._reader.taken():
            self._delivery.hand(memoryview(piece))
        if answer is not None:
            self._left = 0

    def _progress(self) -> None:
        """Wake the reader if its buffer is full, or if the body has ended."""
        if not self.alive:
            return
        now = self._loop.time()
        if not self._left:
            self._phase = Phase.WHOLE
        elif self._delivery.waits and not self._delivery.full:
            self._deadline = now + self._read_timeout
            return
        else:
            self._pause()
            if self._delivery.waits and not self._keeps_up(now):
                return
        self._wake()

    def _wake(self) -> None:
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(self._delivery.position)
        self._delivery.close()
        self._waiting = None

    def _keeps_up(self, now: float) -> bool:
        """Return True if the body arrives fast enough. If not, close the connection."""
        if self._flow.keeps_up(now, self._delivery.position):
            return True
        self.close(TransportTimeoutError(f"hardly a byte came for {self._flow.window:g} seconds"))
        return False

    def _salvage(self, *, plain: bool) -> None:
        """Deliver the rest of a body that is still in TLS after the connection ended.

        asyncio leaves the rest there if reading was paused. plain: for a connection without TLS, True if the end of the
        connection also ends a body without a length.
        """
        if self._phase is not Phase.BODY or not self.alive:
            return
        tls = self._tls()
        pieces, closed = ([], plain) if tls is None else drain_tls(tls, self._left)
        for piece in pieces:
            self._arrived(memoryview(piece))
        if closed and self._until_close:
            self._left = 0
        if not self._left:
            self._phase = Phase.WHOLE
            self._wake()
        elif self._delivery.full:
            self._wake()

    def _failed(self, error: TransportError) -> None:
        self._error = error
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            error.read = self._delivery.position
            waiting.set_exception(error)
        self._delivery.close()

    def _free(self: Self) -> None:
        self._phase = Phase.IDLE
        self._resume()
        super()._free()

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def _watch(self) -> None:
        due = min(self._deadline, self._loop.time() + self._flow.window)
        if self._timer is None or self._timer.when() > due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(due, self._check_time)

    def _check_time(self) -> None:
        if self._waiting is None and self._phase is not Phase.DRAIN:
            super()._check_time()
            return
        self._timer = None
        now = self._loop.time()
        if now >= self._deadline:
            self.close(TransportTimeoutError(f"no byte came for {self._read_timeout:g} seconds"))
        elif self._waiting is None or self._keeps_up(now):
            self._watch()
