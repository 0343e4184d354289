"""kill -9 of the worker at two hundred random moments. SOAK_SEED chooses other moments and other objects."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.killing import killed_workers
from tests.support.servers.stub import StubServer

KILLS = 200
SEED = int(os.environ.get("SOAK_SEED", "200"))


def test_killed_at_two_hundred_moments(stub: StubServer, moto_url: str, tmp_path: Path) -> None:
    killed_workers(stub, moto_url, tmp_path, kills=KILLS, seed=SEED)
