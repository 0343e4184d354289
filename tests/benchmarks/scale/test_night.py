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
from benchmarks.scale.night import LONGEST_CHAIN, Night, pace
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


def test_calls_of_the_other_modes() -> None:
    mixed = Night(objects=MILLION, mode=Mode.MIXED, changed=0.01)
    assert (mixed.lists, mixed.changed_calls, mixed.due_calls) == (1000, 20_000, 0)
    kept = replace(mixed, mode=Mode.INCREMENTAL, acl_days=31.0, head_days=31.0)
    assert (kept.changed_calls, kept.due_calls) == (20_000, 2 * 33_000)
    assert replace(kept, acl_days=11.0).due_calls == 99_000 + 33_000
    assert replace(kept, acl_days=None, head_days=None).due_calls == 0
    assert replace(kept, acl_days=2.0, head=False).due_calls == 990_000, "one turn: all of them, each night"
    assert replace(kept, head=False).object_calls == 10_000 + 33_000
    assert replace(kept, changed=1.0).due_calls == 0, "what changed is asked once"


def test_an_old_inventory_leaves_more_to_ask() -> None:
    """On the seven nights of a week 1 to 7 % have changed since: 4 % on the mean."""
    weekly = Night(objects=MILLION, mode=Mode.MIXED, changed=0.01, inventory_days=7.0)
    assert weekly.changed_calls == 2 * 40_000
    assert replace(weekly, changed=0.5).changed_calls == 2 * MILLION


def test_a_listing_holds_one_function_back() -> None:
    course = pace(Night(objects=MILLION, mode=Mode.MIXED, changed=0.0), FOUND)
    assert course.limit == "the listing"
    assert course.seconds == pytest.approx(1000 * 0.1 + 20 + 0.5), "20 us for each row of the Inventory before it"


def test_a_small_function_is_held_back_by_its_cpu() -> None:
    course = pace(Night(objects=MILLION, mode=Mode.INCREMENTAL, changed=0.0, memory=512), FOUND)
    assert course.limit == "CPU"
    assert course.seconds == pytest.approx(70e-6 * MILLION / (512 / 1769) + 2.0)


def test_a_high_ceiling_does_not_help_beyond_the_calls_in_flight() -> None:
    course = pace(Night(objects=MILLION, max_rate=100_000.0), FOUND)
    assert course.limit == "calls in flight"
    assert course.seconds == pytest.approx(2_001_000 * 0.03 / 128 + 0.5)


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


def test_one_function_may_not_go_on_for_ever() -> None:
    last = math.floor(LONGEST_CHAIN * 854.5 * 2000 / 2.001)
    assert not pace(Night(objects=last - 1000), FOUND).too_long
    assert pace(Night(objects=last + 2000), FOUND).too_long
    assert LONGEST_CHAIN == 201


def test_an_inventory_that_each_invocation_reads() -> None:
    """A row takes 20 us in one function, and half of it in a range that it was spread to."""
    night = Night(objects=10 * MILLION, mode=Mode.MIXED, changed=0.0, disk=10_240)
    assert nights.begin_seconds(night, FOUND) == pytest.approx(200.5)
    assert nights.begin_seconds(replace(night, ranges=10), FOUND) == pytest.approx(10 + 0.5)
    assert nights.begin_seconds(replace(night, mode=Mode.LIVE), FOUND) == 0.5
    course = pace(night, FOUND)
    assert course.hops == math.ceil(1000 / (855 - 200.5))
    assert course.seconds == pytest.approx(1000 + course.hops * 200.5)
    never = pace(replace(night, objects=43 * MILLION), FOUND)
    assert (never.too_long, never.seconds, never.limit) == (True, math.inf, "reading the Inventory")


def test_an_inventory_that_does_not_fit_on_the_disk_of_a_function() -> None:
    """512 MB hold 3.9 million rows of 130 bytes."""
    night = Night(objects=3_900_000, mode=Mode.MIXED)
    assert not pace(night, FOUND).too_long
    full = pace(replace(night, objects=4_000_000), FOUND)
    assert (full.too_long, full.limit) == (True, "the disk for the Inventory")
    assert not pace(replace(night, objects=4_000_000, ranges=2), FOUND).too_long


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


def test_a_machine_reads_the_inventory_once_and_has_no_hops() -> None:
    night = Night(objects=1000 * MILLION, mode=Mode.MIXED, changed=0.0, machine=True)
    course = pace(night, FOUND)
    assert (course.limit, course.too_long) == ("the listing", False)
    assert course.seconds == pytest.approx(20e-6 * 1000 * MILLION + MILLION * 0.1)
    assert (course.invocations, course.billed) == (0, 0.0)
    assert pace(replace(night, mode=Mode.LIVE), FOUND).seconds == pytest.approx(2001 * MILLION / 2000)


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
