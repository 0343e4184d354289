"""The ranges of a run keep one ceiling of calls per second, however many processes there are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from auditor.audit.limits import rate_share
from tests.audit.divided.test_jobs import whole
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault


def test_shares_are_together_no_more_than_the_ceiling() -> None:
    for active in (1, 2, 3, 16, 64):
        for ceiling in (0.5, 10.0, 100.0, 2000.0):
            share = rate_share(ceiling, active)
            assert share is not None
            assert 0.6 * ceiling < share * active <= ceiling or ceiling < 2 * active, (active, ceiling)
            assert 0 < share * active <= ceiling, (active, ceiling)
            assert active == 1 or share < 1 or share.is_integer(), "no second may have a call more"
        assert rate_share(None, active) is None


@pytest.mark.slow
def test_server_sees_no_more_than_the_ceiling(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(200)
    ceiling, seen = 100, list[float]()

    def note(operation: str, key: str, nth: int) -> Fault | None:
        seen.append(time.monotonic())
        return None

    stub.faults = [note]
    whole(stub, tmp_path, "--jobs", "3", "--max-rate", str(ceiling))
    assert len(seen) > 3 * ceiling
    # One second more than passed: what a delay of the machine pushes together is a part of it.
    assert len(seen) <= ceiling * (seen[-1] - seen[0] + 1)
