"""Lambda's Invoke API on 127.0.0.1, for synchronous invocations.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote

Invoke = Callable[[str, bytes], tuple[bytes, str | None]]
"""Takes the name or ARN of a function and an event. Returns the answer, and the text of the header
X-Amz-Function-Error: None if the handler returned. Raises NotInvokedError. From any thread.
"""


class NotInvokedError(Exception):
    """The function was not invoked. status, code: of the API's answer."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


class InvokeApi(ThreadingHTTPServer):
    """A context manager."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, invoke: Invoke) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.invoke = invoke

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hangs up, as the one of a stopped execution may."""


class _Handler(BaseHTTPRequestHandler):
    server: InvokeApi

    def do_POST(self) -> None:
        payload = self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}"
        parts = self.path.split("/")
        try:
            if parts[1:3] != ["2015-03-31", "functions"] or parts[4:] != ["invocations"]:
                raise NotInvokedError(404, "UnknownOperationException")
            answer, error = self.server.invoke(unquote(parts[3]), payload)
            headers = {"X-Amz-Executed-Version": "$LATEST"} | ({"X-Amz-Function-Error": error} if error else {})
            self._answer(200, answer, headers)
        except NotInvokedError as refused:
            self._answer(refused.status, b"{}", {"x-amzn-ErrorType": refused.code})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Say nothing: the functions have logs of their own."""
