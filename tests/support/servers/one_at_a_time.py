"""moto checks a condition and writes in two steps, with other threads' calls between them; DynamoDB needs one step."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class AtomicMotoServer(ThreadedMotoServer):
    """moto's server with a DynamoDB that answers one call after the other."""

    def start(self) -> None:
        super().start()
        assert self._server is not None
        self._server.app = _one_at_a_time(self._server.app)


def _one_at_a_time(app: WSGIApplication) -> WSGIApplication:
    lock = Lock()

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB_"):
            return app(environ, start_response)
        with lock:
            return app(environ, start_response)

    return guarded
