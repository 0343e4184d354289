"""kill -9 of the worker at twenty random moments: nothing lost, nothing hashed wrong, nothing stuck."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.killing import killed_workers
from tests.support.servers.stub import StubServer


@pytest.mark.slow
def test_killed_at_twenty_moments(stub: StubServer, moto_url: str, tmp_path: Path) -> None:
    killed_workers(stub, moto_url, tmp_path, kills=20, seed=20)
