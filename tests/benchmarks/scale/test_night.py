"""Calls, hops and seconds of nights that were computed by hand."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scale import night as nights
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import Night, pace
from tests.benchmarks.scale.figures import FOUND
from tests.support.paths import ROOT

MILLION = 10**6


def test_a_million_live_objects() -> None:
    night = Night(objects=MILLION)
    assert (night.lists, night.object_calls, night.s3_calls) == (1000, 2 * MILLION, 2_001_000)
    course = pace(night, FOUND)
    assert course.limit == "the ceiling of calls"
    assert course.hops == course.invocations == 2  # 1,000.5 s, at 854.5 s an invocation
    assert course.seconds == course.billed == pytest.approx(2_001_000 / 2000 + 2 * 0.5)
    assert course.parts == 20  # 50,000 objects each; 17 minutes would be 17


@given(
    objects=st.integers(1, 10**11),
    mode=st.sampled_from(Mode),
    changed=st.floats(0, 1),
    ranges=st.integers(1, 200),
    at_once=st.integers(1, 200),
    rate=st.floats(1, 1e6),
    memory=st.sampled_from([128, 512, 1769, 3008]),
)
def test_no_night_exceeds_its_ceiling_or_loses_a_call(
    objects: int, mode: Mode, changed: float, ranges: int, at_once: int, rate: float, memory: int
) -> None:
    night = Night(
        objects=objects, mode=mode, changed=changed, acl_days=30.0, head_days=7.0, ranges=ranges, at_once=at_once,
        max_rate=rate, memory=memory,
    )  # fmt: skip
    course = pace(night, FOUND)
    if math.isinf(course.seconds):
        assert (mode, course.too_long, course.invocations) == (Mode.MIXED, True, 0)
        return
    assert course.calls_a_second <= rate * 1.000001
    assert night.lists * 1000 >= objects
    assert night.object_calls <= 2 * objects + 2
    assert course.billed <= course.seconds * min(ranges, at_once) * 1.000001
    assert course.invocations >= ranges
    assert course.parts * 50_000 >= objects


def test_the_deployment_has_these_defaults() -> None:
    deployed = (ROOT / "deploy" / "parameters.yml").read_text(encoding="utf-8").partition("\nlocal:")[0]
    night = Night(objects=1)
    for name, value in (
        ("auditTimeout", nights.FUNCTION_SECONDS),
        ("auditMemory", night.memory),
        ("reportDays", night.kept_nights),
        ("maxRate", f"{night.max_rate:.0f}"),
    ):
        assert re.search(rf"\n  {name}: '?{value}'?(?: #.*)?\n", deployed), name
