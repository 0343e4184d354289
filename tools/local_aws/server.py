"""moto's server, as tests and the local AWS start it."""

from __future__ import annotations

from moto.server import ThreadedMotoServer

from auditor.cli.demo.moto_dynamodb import one_at_a_time, undo_quickly


class AtomicMotoServer(ThreadedMotoServer):
    """moto's server with a DynamoDB that answers one call after the other."""

    def start(self) -> None:
        undo_quickly()
        super().start()
        assert self._server is not None
        self._server.app = one_at_a_time(self._server.app)
