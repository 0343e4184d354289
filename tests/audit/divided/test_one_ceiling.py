"""The ranges of a run keep one ceiling of calls per second, however many processes there are."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from auditor.audit.divided.share import rate_share
from tests.audit.divided.test_jobs import whole
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault

TICK_SECONDS: Final = 0.002


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
def test_server_sees_no_more_than_the_ceiling_in_any_second(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(200)
    ceiling, seen = 100, list[float]()

    def note(operation: str, key: str, nth: int) -> Fault | None:
        seen.append(time.monotonic())
        return None

    stub.faults = [note]
    with longest_delay() as delay:
        whole(stub, tmp_path, "--jobs", "3", "--max-rate", str(ceiling))
    assert len(seen) > 3 * ceiling
    # A call that the machine delays by so much, here or in its process, is seen beside the calls after it.
    assert most_in_a_second(seen) <= ceiling * (1 + 2 * max(delay))


@contextmanager
def longest_delay() -> Iterator[list[float]]:
    """Yield a list that grows meanwhile: by how many seconds the machine lets a thread sleep too long."""
    delays, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.is_set():
            began = time.monotonic()
            time.sleep(TICK_SECONDS)
            delays.append(time.monotonic() - began - TICK_SECONDS)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield delays
    finally:
        ended.set()
        watcher.join()


def most_in_a_second(times: Sequence[float]) -> int:
    """The largest number of these times within one second. times: sorted."""
    return max(bisect_left(times, begin + 1.0) - number for number, begin in enumerate(times))
