"""A connection that reads bodies from the socket, or from TLS, straight into the caller's buffer."""

from __future__ import annotations

import asyncio
import enum
import sys
from typing import Final, Self

from auditor.s3.http.base import (
    BrokenAnswerError,
    MinimumRate,
    Response,
    Server,
    TransportError,
    TransportTimeoutError,
)
from auditor.s3.http.connection import CLOSED_EARLY, ConnectionOwner, HttpConnection, drain_tls
from auditor.s3.http.response import ResponseReader

HEAD_SIZE: Final = 32 * 1024
"""Bytes of the connection's own buffer. It is for the head of a response, and a small body after it."""

DRAINED: Final = 64 * 1024
"""Limit in bytes for the rest of a released body. The connection reads and discards a rest up to this size.

For a longer rest, a new connection costs less."""

_DRAIN_SECONDS: Final = 2.0
_DISCARDED: Final = memoryview(bytearray(DRAINED))
"""The shared buffer for discarded bytes."""
_NO_BUFFER: Final = memoryview(b"")


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

    The HTTP parser reads the head and the bytes that came with it, and every body without a length. The rest of a body
    with a length goes past the parser. While no caller waits in readinto(), reading is paused: then only the bytes that
    came with the head are in memory. TLS and the kernel buffer up to 256 KiB each.
    """

    __slots__ = (
        "_buffer",
        "_counted",
        "_error",
        "_head",
        "_kept",
        "_left",
        "_paused",
        "_phase",
        "_position",
        "_rate",
        "_since",
        "_waiting",
    )

    def __init__(self, owner: ConnectionOwner[Self], server: Server) -> None:
        super().__init__(owner, server)
        self._reader = ResponseReader(sys.maxsize)
        self._rate = MinimumRate(server.least_rate, server.slow_seconds)
        self._head = memoryview(bytearray(HEAD_SIZE))
        self._kept = bytearray()  # bytes of the body that no reader has taken
        self._buffer, self._position = _NO_BUFFER, 0  # of the waiting reader, and the number of bytes in it
        self._waiting: asyncio.Future[int] | None = None
        self._since, self._counted = 0.0, 0  # when the rate was measured last, and the position then
        self._error: TransportError | None = None
        self._phase = Phase.IDLE
        self._paused = False
        self._left: int | None = 0  # bytes of the body to come; None if the parser finds its end

    def begin(self, request: bytes, *, head_only: bool, patience: float | None = None) -> asyncio.Future[Response]:
        """Send a request. Return a future of the answer's head (status, headers).

        head_only, patience: see HttpConnection.begin().
        """
        self._phase, self._left = Phase.HEAD, None
        return super().begin(request, head_only=head_only, patience=patience)

    def abandon(self, future: asyncio.Future[Response]) -> None:
        super().abandon(future)
        if self._phase in (Phase.BODY, Phase.WHOLE):
            self.release()

    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer with the next bytes of the body, and return their number (see Stream.readinto())."""
        count = self._take(buffer)
        if count == len(buffer) or self._phase is Phase.WHOLE:
            return count
        if self._error is not None:
            error = type(self._error)(*self._error.args)
            error.read = count
            raise error
        waiting: asyncio.Future[int] = self._loop.create_future()
        self._waiting = waiting
        self._buffer, self._position = buffer, count
        self._since, self._counted = self._loop.time(), count
        self._deadline = self._since + self._read_timeout
        self._watch()
        self._resume()
        try:
            return await waiting
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._buffer, self._waiting = _NO_BUFFER, None

    def release(self) -> None:
        """End the use of the body. The connection stays open for the next request, unless much of the body is left."""
        self._kept.clear()
        if not self.alive:
            return
        if self._phase is Phase.WHOLE and self._reader.reusable:
            self._free()
        elif self._phase is Phase.BODY and self._reader.reusable and self._left is not None and self._left <= DRAINED:
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
        if self._phase is Phase.BODY and self._left is not None and self._waiting is not None:
            return self._buffer[self._position : self._position + self._left]
        if self._phase is Phase.HEAD or self._phase is Phase.BODY:
            return self._head
        return _DISCARDED

    def buffer_updated(self, nbytes: int) -> None:
        phase = self._phase
        if phase is Phase.BODY:
            if self._left is not None and self._waiting is not None:
                self._left -= nbytes
                self._position += nbytes
            else:
                self._arrived(self._head[:nbytes])
            self._progress()
        elif phase is Phase.HEAD:
            answer = self._arrived(self._head[:nbytes])
            if not self._reader.status:
                self._wait_for_more()
            elif self.alive:
                self._begin_body(answer or self._reader.head())
        elif phase is Phase.DRAIN and self._left is not None:
            self._left -= nbytes
            if self._left < 0:
                self.close()  # the server sent bytes after the response
            elif not self._left:
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

    def _arrived(self, data: bytes | memoryview) -> Response | None:
        """Take bytes of a head or a body that are not in the reader's buffer. The parser decodes them, unless the
        length of the body is known. Return the answer if the parser found its end in these bytes.
        """
        answer = None
        if self._left is not None:
            self._left -= len(data)
            self._kept += data
        else:
            try:
                answer = self._reader.feed(data)
            except BrokenAnswerError as error:
                self.close(error)
                return None
            self._kept += b"".join(self._reader.taken()) if answer is None else answer.body
            if answer is not None:
                self._left = 0
        self._position += self._take(self._buffer[self._position :])
        return answer

    def _begin_body(self, answer: Response) -> None:
        """Give the head to the caller of begin(), and wait until a reader wants the body."""
        length = answer.headers.get(b"content-length")
        if self._left is None and length is not None and b"transfer-encoding" not in answer.headers:
            self._left = int(length) - len(self._kept)
        self._rate.restart()
        self._phase = Phase.WHOLE if self._left == 0 else Phase.BODY
        if self._left != 0:
            self._pause()
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_result(answer)

    def _take(self, buffer: memoryview) -> int:
        """Move kept bytes into this buffer, and return their number."""
        count = min(len(self._kept), len(buffer))
        if count:
            buffer[:count] = self._kept[:count]
            del self._kept[:count]
        return count

    def _progress(self) -> None:
        """Wake the reader if its buffer is full, or if the body has ended."""
        if not self.alive:
            return
        if self._left == 0:
            self._phase = Phase.WHOLE
            # Bytes after the response may be in the socket. asyncio reports them before the reader goes on.
            self._loop.call_soon(self._wake)
            return
        if self._position < len(self._buffer):
            self._deadline = self._loop.time() + self._read_timeout
            return
        self._pause()
        if self._waiting is None or self._keeps_up(self._loop.time()):
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting, self._buffer = self._waiting, None, _NO_BUFFER
        if waiting is not None and not waiting.done():
            waiting.set_result(self._position)

    def _keeps_up(self, now: float) -> bool:
        """Return True if the body arrives fast enough. If not, close the connection."""
        seconds, size = now - self._since, self._position - self._counted
        self._since, self._counted = now, self._position
        if self._rate.holds(seconds, size):
            return True
        self.close(TransportTimeoutError(f"hardly a byte came for {self._rate.window:g} seconds"))
        return False

    def _salvage(self, *, plain: bool) -> None:
        """Deliver the rest of a body that is still in TLS after the connection ended.

        asyncio leaves the rest there if reading was paused. plain: for a connection without TLS, True if the end of the
        connection also ends a body without a length.
        """
        if self._phase is not Phase.BODY or not self.alive:
            return
        tls = self._tls()
        pieces, closed = (
            ([], plain) if tls is None else drain_tls(tls, sys.maxsize if self._left is None else self._left)
        )
        for piece in pieces:
            self._arrived(piece)
        if closed and self._left is None and self._reader.end() is not None:
            self._left = 0
        if self._left == 0:
            self._phase = Phase.WHOLE
            self._wake()
        elif self._waiting is not None and self._position == len(self._buffer):
            self._wake()

    def _failed(self, error: TransportError) -> None:
        self._error = error
        if self._phase is Phase.WHOLE:
            self._wake()
        waiting, self._waiting, self._buffer = self._waiting, None, _NO_BUFFER
        if waiting is not None and not waiting.done():
            error.read = self._position
            waiting.set_exception(error)

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
        due = min(self._deadline, self._loop.time() + self._rate.window)
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
