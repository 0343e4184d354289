"""A connection that reads each answer as a whole into memory."""

from __future__ import annotations

import asyncio
from typing import Final, Self

from auditor.s3.http.base import BrokenAnswerError, Server
from auditor.s3.http.connection import CLOSED_EARLY, ConnectionOwner, HttpConnection, drain_tls

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
