"""moto's server with a DynamoDB that answers one call after the other: `python -m deploy.one_at_a_time PORT`.

moto checks a condition and writes in two steps, creates a new item before it sets the attributes, and undoes a failed
transaction by a copy of the whole table. Calls of other threads in between are lost, or leave an item without
attributes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class AtomicMotoServer(ThreadedMotoServer):
    """moto's server with a DynamoDB that answers one call after the other."""

    def start(self) -> None:
        super().start()
        assert self._server is not None
        self._server.app = one_at_a_time(self._server.app)


def one_at_a_time(app: WSGIApplication) -> WSGIApplication:
    """Return the application with a lock around each call to DynamoDB."""
    lock = threading.Lock()

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB_"):
            return app(environ, start_response)
        with lock:
            return app(environ, start_response)

    return guarded


if __name__ == "__main__":
    AtomicMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False).start()
    threading.Event().wait()
