"""moto's server with a DynamoDB that answers one call after the other: `python -m deploy.one_at_a_time PORT`."""

from __future__ import annotations

import importlib
import sys
import threading

from moto.server import ThreadedMotoServer

from auditor.cli.demo.moto_dynamodb import one_at_a_time, undo_quickly


class AtomicMotoServer(ThreadedMotoServer):
    """moto's server with a DynamoDB that answers one call after the other."""

    def start(self) -> None:
        undo_quickly(importlib.import_module)
        super().start()
        assert self._server is not None
        self._server.app = one_at_a_time(self._server.app)


if __name__ == "__main__":
    AtomicMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False).start()
    threading.Event().wait()
