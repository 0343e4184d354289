"""A connection whose answers are held whole."""

from __future__ import annotations

import asyncio
from typing import Final, Self

from auditor.s3.http.base import BrokenAnswerError, Server
from auditor.s3.http.connection import CLOSED_EARLY, ConnectionOwner, HttpConnection
from auditor.s3.http.tls import drain_tls

RECEIVED: Final = 64 * 1024
"""Bytes that are taken from the socket at once."""


class BufferedConnection(HttpConnection, asyncio.BufferedProtocol):
    """Reading is never paused: an answer has a limit.

    All connections of a transport receive into one buffer, for what came is read before anything else happens. Without
    it the loop (uvloop 0.23) makes a quarter of a mebibyte for each answer, and the heap is touched all over in time.
    received: that buffer; None: one of its own.
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
            # Nothing was asked, so this answers nothing that will be.
            self.close()
            return
        reader = self._reader
        try:
            answer = reader.feed(self._received[:nbytes])
        except BrokenAnswerError as error:
            self.close(error)
            return
        if answer is None:
            self._deadline = min(self._loop.time() + self._read_timeout, self._last)
            return
        self._future = None
        if not future.done():
            future.set_result(answer)
        if reader.reusable:
            self._free()
        else:
            self.close()

    def eof_received(self) -> None:
        """The transport closes itself afterwards."""
        future = self._future
        if future is not None and not future.done() and self._said_farewell():
            answer = self._reader.end()
            if answer is not None:
                self._future = None
                future.set_result(answer)
        self._lost(CLOSED_EARLY)

    def _said_farewell(self) -> bool:
        """Whether the server itself ended the connection. Below TLS anybody can, and asyncio's loop tells of both."""
        tls = self._tls()
        if tls is None:
            return True
        pieces, farewell = drain_tls(tls, 1)
        return farewell and not pieces
