"""Calls, hops and seconds of nights that were computed by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace

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


def test_ranges_share_one_ceiling() -> None:
    alone, wide = Night(objects=MILLION), Night(objects=MILLION, ranges=64, at_once=8)
    one, many = pace(alone, FOUND), pace(wide, FOUND)
    assert wide.s3_calls == alone.s3_calls + 63
    assert many.calls_a_second <= 2000
    assert many.seconds == pytest.approx(8 * (wide.s3_calls / 64 / 250 + 0.5))
    assert many.billed == pytest.approx(64 * (wide.s3_calls / 64 / 250 + 0.5)), "all of them wait, and each is paid"
    assert many.billed > 7 * one.billed
    assert many.hops == 1
    assert many.invocations == 64
    assert many.parts == 64 * 3, "125 seconds are three parts of a minute"


def test_an_inventory_that_is_spread_over_ranges() -> None:
    """14 us a row in the plan, whose invocations have 854.5 s each."""
    night = Night(objects=100 * MILLION, mode=Mode.MIXED, changed=0.0, ranges=64, at_once=64)
    plans, seconds = nights.spreading(night, FOUND)
    assert plans == 1
    assert seconds == pytest.approx(1400 + 2 * 0.5)
    assert nights.spreading(replace(night, ranges=1), FOUND) == (0, 0.0)
    assert nights.spreading(replace(night, mode=Mode.LIVE), FOUND) == (0, 0.0)
    one = 100_063 / 64 * 0.1 + 10e-6 * 100 * MILLION / 64 + 0.5
    course = pace(night, FOUND)
    assert course.seconds == pytest.approx(1401 + one)
    assert course.billed == pytest.approx(1401 + 64 * one)
    assert course.invocations == 64 + 1
    writes = math.ceil(100 * MILLION * 171 / (96 * 1024**2))
    assert night.pieces == writes * 64
    assert replace(night, ranges=1).pieces == replace(night, mode=Mode.INCREMENTAL).pieces == 0


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


def test_the_audit_function_has_the_disk_that_lambda_gives() -> None:
    declared = (ROOT / "deploy" / "functions" / "audit.yml").read_text(encoding="utf-8")
    found = re.search(r"ephemeralStorageSize: (\d+)", declared)
    assert (int(found[1]) if found else 512) == nights.DISK


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
