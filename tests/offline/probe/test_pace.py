"""Strangers send ten requests a second, by a clock that moves only while they wait."""

from __future__ import annotations

from auditor.offline.probe.probe_run import ProbeOrder
from auditor.offline.probe.strangers import PER_SECOND
from auditor.s3.rate import ARRIVAL_SECONDS, RateLimit
from tests.offline.probe.conftest import Probing
from tests.support.fakes.caller import FakeTime


async def test_ten_a_second(probing: Probing) -> None:
    for number in range(30):
        probing.put(f"{number:02}")
    await probing.audit()
    clock, times = FakeTime(), list[float]()

    def note(call: object, nth: int) -> None:
        times.append(clock.now)

    probing.server.lies = note
    found = await probing.probe(ProbeOrder(sample=30), RateLimit(PER_SECOND, clock=clock.clock, sleep=clock.sleep))
    assert found.compared == 30
    assert len(times) == 60
    assert all(later - first >= 1.0 for first, later in zip(times, times[10:], strict=False))
    assert times[-1] - times[0] <= 60 / PER_SECOND * (1.0 + ARRIVAL_SECONDS) + 1.0
