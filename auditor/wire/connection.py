"""A connection whose answers are held whole."""

from __future__ import annotations

import asyncio

from auditor.wire.farewell import emptied
from auditor.wire.interface import BrokenAnswerError
from auditor.wire.kept import CLOSED_EARLY, KeptConnection


class Connection(KeptConnection, asyncio.Protocol):
    """Reading is never paused: an answer has a limit."""

    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        future = self._future
        if future is None:
            # Nothing was asked, so this answers nothing that will be.
            self.close()
            return
        try:
            answer = self._reader.feed(data)
        except BrokenAnswerError as error:
            self.close(error)
            return
        if answer is None:
            self._deadline = min(self._loop.time() + self._read_timeout, self._last)
            return
        self._future = None
        if not future.done():
            future.set_result(answer)
        if self._reader.reusable:
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
        pieces, farewell = emptied(tls, 1)
        return farewell and not pieces
