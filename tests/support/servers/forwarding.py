"""A server in front of another one. It sees each request, and may change the answer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

_OF_ONE_HOP: Final = {"connection", "content-length", "expect", "host", "keep-alive", "transfer-encoding"}


class Forwarding:
    """A context manager; on 127.0.0.1. behind: the other server's URL. Subclasses override asked() and others."""

    def __init__(self, behind: str) -> None:
        self.behind = behind.removeprefix("http://")
        self._server = _Server(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def asked(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """headers: in lower case. From any thread."""

    def refused(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes] | None:
        """The status and the body to answer without the other server; None to ask that. From any thread."""
        return None

    def given(self, target: str, answer: HTTPResponse) -> bytes:
        """The body to send instead of the answer's, of the same length."""
        return answer.read()

    def send(self, output: Any, body: bytes) -> None:
        """Write the body."""
        output.write(body)


class Silencing(Forwarding):
    """It leaves the requests that `silent` chooses without an answer. silent: takes method, target and headers."""

    def __init__(self, behind: str) -> None:
        super().__init__(behind)
        self.silent: Callable[[str, str, Mapping[str, str]], bool] = lambda method, target, headers: False
        self._ends = threading.Event()

    def asked(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        if self.silent(method, target, headers):
            self._ends.wait()
            raise ConnectionAbortedError("the test is over")

    def __exit__(self, *exc: object) -> None:
        self._ends.set()
        super().__exit__(*exc)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: Forwarding) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client may hang up in mid-body
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def _forward(self) -> None:
        owner = self.server.owner
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        lower = {name.lower(): value for name, value in self.headers.items()}
        owner.asked(self.command, self.path, lower, data)
        if (refusal := owner.refused(self.command, self.path, lower, data)) is not None:
            status, body = refusal
            self.send_response_only(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                owner.send(self.wfile, body)
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_HOP}
        behind = HTTPConnection(owner.behind, timeout=60)
        try:
            behind.request(self.command, self.path, data or None, headers)
            answer = behind.getresponse()
            length = answer.headers["Content-Length"]
            body = owner.given(self.path, answer)
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _OF_ONE_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(body)))
            self.end_headers()
            owner.send(self.wfile, body)
        finally:
            behind.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing; a subclass can override asked()."""
