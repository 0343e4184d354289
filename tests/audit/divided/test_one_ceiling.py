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

from auditor.audit.divided.share import PlanningShare, rate_share
from auditor.config.settings import Settings
from auditor.s3.rate import ARRIVAL_SECONDS, BURST_SECONDS, RateLimit
from tests.audit.divided.test_jobs import whole
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault

TICK_SECONDS: Final = 0.002


@pytest.mark.parametrize("active", [1, 2, 3, 16, 64])
@pytest.mark.parametrize("ceiling", [0.5, 10.0, 100.0, 2000.0])
def test_shares_are_together_no_more_than_the_ceiling(ceiling: float, active: int) -> None:
    share = rate_share(ceiling, active)
    assert share is not None
    assert 0.6 * ceiling < share * active <= ceiling or ceiling < 2 * active
    assert 0 < share * active <= ceiling
    assert active == 1 or share < 1 or share.is_integer()  # so that no second has a call more
    assert rate_share(None, active) is None


def test_planning_uses_a_tenth_of_the_limits() -> None:
    assert PlanningShare.of(Settings()).most is None
    assert PlanningShare.of(Settings(max_calls=1000)).most == 100
    assert PlanningShare.of(Settings(max_calls=10**6, max_cost=0.01)).most == 200
    assert PlanningShare.of(Settings(max_cost=0.01, prices={"list": 0})).most is None
    rest = PlanningShare.of(Settings(max_calls=1000, max_cost=0.01)).rest(100)
    assert (rest.max_calls, round(rest.max_cost or 0, 6)) == (900, 0.0095)


async def test_changed_ceiling_holds_for_the_next_call() -> None:
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    rate = RateLimit(10.0, clock=lambda: now, sleep=sleep)
    for ceiling, seconds in ((10.0, 2.0), (2.0, 10.0), (100.0, 0.2)):
        rate.change(ceiling)
        await rate.take()
        began = now
        for _ in range(20):
            await rate.take()
        longest = seconds * (1 + ARRIVAL_SECONDS) + ARRIVAL_SECONDS
        assert seconds - BURST_SECONDS - 1e-6 <= now - began <= longest  # with the burst at the start
    rate.change(None)
    began = now
    await rate.take()
    assert now == began


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2, 5])
def test_server_sees_no_more_than_the_ceiling_in_any_second(stub: StubServer, tmp_path: Path, jobs: int) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(300)
    ceiling, seen = 100, list[float]()

    def note(operation: str, key: str, nth: int) -> Fault | None:
        seen.append(time.monotonic())
        return None

    stub.faults = [note]
    with longest_delay() as delay:
        whole(stub, tmp_path, "--jobs", str(jobs), "--max-rate", str(ceiling))
    assert len(seen) > 5 * ceiling
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
