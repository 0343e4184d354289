"""A server that speaks bytes: a script for each connection says what it reads, sends, and how it ends."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from tests.support.servers.ends import streams_served

NO_LINGER: Final = struct.pack("ii", 1, 0)
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """One connection, seen from the server. number: 1 for the first."""

    def __init__(self, server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.number = server.accepted
        self._reader = reader
        self._writer = writer

    async def request(self) -> bytes:
        """The next request's head; raises IncompleteReadError when the client is gone."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        self.server.requests.append(head)
        await self.server.tell()
        return head

    async def name(self) -> str:
        """The next request's path, without the slash."""
        return (await self.request()).split(b" ")[1][1:].decode()

    async def send(self, *pieces: bytes) -> None:
        """Send each piece by itself; the client's loop runs between them."""
        for piece in pieces:
            if self._writer.is_closing():
                raise ConnectionResetError("the client is gone")
            self._writer.write(piece)
            await self._writer.drain()
            await breath()

    async def join(self, port: int) -> None:
        """Be a tunnel to this port, as a proxy is after CONNECT."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await self.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_pour(self._reader, writer), _pour(reader, self._writer))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def write(self, data: bytes) -> None:
        """Send without waiting."""
        self._writer.write(data)

    def cut(self) -> None:
        """End the connection below TLS, without a close_notify."""
        raw: socket.socket | None = self._writer.get_extra_info("socket")
        if raw is None:
            return
        # asyncio lends its socket without shutdown; a copy of the descriptor is one of our own.
        with socket.socket(fileno=os.dup(raw.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)

    async def gone(self) -> None:
        """Wait until the client has closed; what it still sends is lost."""
        with suppress(OSError):
            while await self._reader.read(65536):
                pass

    async def reset(self) -> None:
        """End with RST instead of FIN."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._writer.transport.abort()
        await breath()


Script = Callable[[Peer], Awaitable[None]]
"""Plays one connection; it is closed when the script returns."""


class RawServer:
    """port: on 127.0.0.1. accepted, open: connections so far and now. requests: every head that was read."""

    def __init__(self, script: Script) -> None:
        self.port = 0
        self.accepted = 0
        self.open = 0
        self.requests: list[bytes] = []
        self.script = script
        self._changed = asyncio.Condition()

    async def until(self, holds: Callable[[RawServer], bool]) -> None:
        """Wait until the condition holds of this server; raises TimeoutError."""
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: holds(self))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        peer = Peer(self, reader, writer)
        self.open += 1
        await self.tell()
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self.script(peer)
        finally:
            self.open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            await self.tell()

    async def tell(self) -> None:
        """Something changed: wake the tasks that wait for it."""
        async with self._changed:
            self._changed.notify_all()


@asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """A running server; its scripts are ended with it."""
    raw = RawServer(script)
    async with streams_served(raw.serve, tls) as (_, raw.port):
        yield raw


def answering(*pieces: bytes) -> Script:
    """Answers every request with these pieces."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(*pieces)

    return script


def once(*pieces: bytes) -> Script:
    """Answers one request with these pieces and closes."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(*pieces)

    return script


def by_name(pieces: Mapping[str, tuple[bytes, ...]], *, closes: bool = False) -> Script:
    """Answers each request with the pieces of its target's name; closes: and then ends the connection."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.send(*pieces[await peer.name()])
            if closes:
                return

    return script


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()


async def breath() -> None:
    """Let everything that is ready happen."""
    for _ in range(3):
        await asyncio.sleep(0)
    await asyncio.sleep(0.001)
