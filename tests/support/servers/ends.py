"""The end of a test's server: no connection outlives its loop, whoever connected in the last moment.

A transport that the garbage collector finds warns in the test that runs at that moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from ssl import SSLContext

TURNS = 5

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def no_longer_listening(server: asyncio.Server) -> None:
    """Close the server, with no connection half made: before Python 3.12 one that was accepted in the turn before
    raises within asyncio, which leaves its socket open.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    for _ in range(TURNS):
        await asyncio.sleep(0)
    server.close()


async def all_ended(transports: Collection[asyncio.BaseTransport]) -> None:
    """Abort the connections, and new ones that arrive meanwhile; each closes its socket in the loop's next turn."""
    for _ in range(TURNS):
        for transport in list(transports):
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def streams_served(handle: Handle, tls: SSLContext | None = None) -> AsyncIterator[tuple[str, int]]:
    """asyncio.start_server on a port of its own; yields host and port. Handlers are cancelled at the end."""
    handlers: set[asyncio.Task[None]] = set()
    transports: list[asyncio.BaseTransport] = []

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        transports.append(writer.transport)
        try:
            await handle(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The end below cancels the handler; before Python 3.12 asyncio reports this as a failure.
            writer.transport.abort()
        finally:
            handlers.discard(task)

    server = await asyncio.start_server(tracked, "127.0.0.1", 0, ssl=tls)
    try:
        host, port = server.sockets[0].getsockname()
        yield host, port
    finally:
        await no_longer_listening(server)
        for handler in list(handlers):
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await all_ended(transports)
