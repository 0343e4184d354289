"""Four workers under everything at once: kills, an outage of the ledger, wrong clocks, doubled and late messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chaos import campaign
from tests.support.servers.stub import StubServer


@pytest.mark.slow
def test_nothing_is_lost_wrong_or_stuck(stub: StubServer, moto_url: str, tmp_path: Path) -> None:
    ledger = f"sqlite:{tmp_path / 'ledger.db'}"
    told = campaign(stub, moto_url, tmp_path, ledger, workers=4, seed=5, rounds=24, outage=(8, 18), pause=0.3)
    assert "0 wrong" in told
