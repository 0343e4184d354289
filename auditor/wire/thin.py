"""The thin transport: HTTP/1.1 with keep-alive on a pool of connections, and nothing else. It is the hot path."""

from __future__ import annotations

import asyncio

from auditor.wire.connection import StaleConnectionError
from auditor.wire.interface import Answer, Request, Server
from auditor.wire.pool import Pool, Statistics
from auditor.wire.writing import request_bytes


class ThinTransport:
    """One write and one future for each request; no task, and no timer of its own.

    It knows no proxy, decompresses nothing, and holds each body whole: AiohttpTransport is for the rest.
    """

    __slots__ = ("_pool", "_resent")

    def __init__(self, server: Server) -> None:
        """Raises ValueError for a server behind a proxy."""
        if server.proxy is not None:
            raise ValueError("the thin transport knows no proxy")
        self._pool = Pool(server)
        self._resent = 0

    async def send(self, request: Request) -> Answer:
        """The answer, whole; raises TransportError, and ValueError for a request that would be another one.

        A kept connection may turn out to be closed before a byte of the answer came; the request is then sent once
        more, on a new connection. That is safe: a GET or HEAD changes nothing.
        """
        written, head_only = request_bytes(request), request.method == "HEAD"
        stale = False
        connection = self._pool.take_idle()
        while True:
            if connection is None:
                connection = await self._pool.take(fresh=stale)
            future = connection.begin(written, head_only=head_only)
            try:
                return await future
            except StaleConnectionError:
                # A new connection is never stale, so this happens once.
                self._resent += 1
                stale, connection = True, None
            except asyncio.CancelledError:
                connection.abandon(future)
                raise

    async def close(self) -> None:
        """Close every connection; requests under way and waiting fail with ConnectionLostError."""
        await self._pool.close()

    def statistics(self) -> Statistics:
        """What the pool holds now, and did so far."""
        return self._pool.statistics(self._resent)
