"""A server whose answers have no end, or take hundreds of times their size to parse."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any, Final, Self

_MIB: Final = 1024 * 1024
_MOST: Final = 512 * _MIB
"""Bytes of an answer without end, after which the server closes the connection."""
_DOCTYPE: Final = b'<!DOCTYPE r [<!ENTITY a "%s">%s]>' % (
    b"a" * 1000,
    b"".join(b'<!ENTITY %c "%s">' % (98 + at, b"&%c;" % (97 + at) * 30) for at in range(4)),
)


def _plain(pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n"
    yield from pieces


def _sized(body: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    yield body


def _refused(body: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body)
    yield body


def _endless(piece: bytes) -> Iterator[bytes]:
    return repeat(piece * (_MIB // len(piece)), _MOST // _MIB)


def _chunks(data: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield from repeat(b"%x\r\n%s\r\n" % (len(data), data), _MOST // len(data))


ATTACKS: Final[dict[str, Callable[[], Iterator[bytes]]]] = {
    "a body without end": lambda: _plain(chain([b"<ListBucketResult>"], _endless(b"<Contents></Contents>"))),
    "chunks without end": lambda: _chunks(b"<a>" * 20_000),
    "a chunk's size without end": lambda: chain(
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"], _endless(b"1")
    ),
    "a header without end": lambda: chain([b"HTTP/1.1 200 OK\r\nx-amz-meta-a: "], _endless(b"a")),
    "headers without end": lambda: chain([b"HTTP/1.1 200 OK\r\n"], _endless(b"x-amz-meta-a: %s\r\n" % (b"a" * 60_000))),
    "a status without end": lambda: _endless(b"HTTP/1.1 200 OK"),
    "elements that take much memory": lambda: _sized(b"<r>" + b"<a/>" * (30 * _MIB // 4) + b"</r>"),
    "attributes that take much memory": lambda: _sized(
        b"<r " + b" ".join(b'a%d=""' % at for at in range(900_000)) + b"/>"
    ),
    "nested elements": lambda: _sized(b"<Rule>" * 900_000),
    "entities": lambda: _sized(_DOCTYPE + b"<r>" + b"&e;" * 100 + b"</r>"),
    "an error that takes much memory": lambda: _refused(b"<Error>" + b"<a/>" * (30 * _MIB // 4) + b"</Error>"),
    "lists in JSON": lambda: _sized(b'{"Messages": [' + b"[]," * (18 * _MIB // 3) + b"[]]}"),
}
"""The answers by their name."""


class HostileServer(socketserver.ThreadingTCPServer):
    """Gives each request the answer `attack`. A context manager, on a port of 127.0.0.1."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, attack: str) -> None:
        self.pieces = list(ATTACKS[attack]()) if attack.endswith("memory") else None
        self.attack = attack
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client hangs up, as it must."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(socketserver.BaseRequestHandler):
    server: HostileServer

    def handle(self) -> None:
        read = b""
        while b"\r\n\r\n" not in read:
            piece = self.request.recv(65536)
            if not piece:
                return
            read += piece
        for piece in self.server.pieces or ATTACKS[self.server.attack]():
            self.request.sendall(piece)
