"""Where one way of running a night becomes better than another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.scale.find import advised, first_size, mapped, simulate
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import Night, pace
from tests.benchmarks.scale.figures import FOUND

BILLION = 10**9


@pytest.mark.parametrize("edge", [1, 7, 999, 3_600_000, 171_000_000])
def test_the_smallest_size_is_found(edge: int) -> None:
    found = first_size(lambda objects: objects >= edge)
    assert found is not None
    assert edge <= found <= edge * 1.02 + 1


def test_a_size_that_does_not_come_is_not_found() -> None:
    assert first_size(lambda objects: False) is None


def test_no_range_more_runs_at_once_than_shortens_the_night() -> None:
    """One function sends 2,000 calls a second by itself: a second one would wait with it, and be paid."""
    live = mapped(Night(objects=BILLION), FOUND)
    assert live.at_once == 1
    alone = pace(Night(objects=BILLION), FOUND)
    assert simulate(live, FOUND).course.billed == pytest.approx(alone.billed, rel=0.01)
    fast = mapped(Night(objects=BILLION, max_rate=40_000.0), FOUND)
    assert fast.at_once == 16, "40,000 calls a second are 9.4 functions of 4,267"


def test_a_listing_is_faster_in_ranges() -> None:
    night = Night(objects=BILLION, mode=Mode.INCREMENTAL, changed=0.0)
    wide = mapped(night, FOUND)
    assert wide.at_once == 64
    assert pace(night, FOUND).seconds / pace(wide, FOUND).seconds > 60


def test_a_large_inventory_goes_to_as_many_ranges_as_disks_hold_it() -> None:
    sizes = (10**6, 10**7, 10**9)
    assert [advised(Night(objects=size, mode=Mode.MIXED), FOUND).night.ranges for size in sizes] == [1, 64, 254]
    assert not simulate(mapped(Night(objects=BILLION, mode=Mode.MIXED), FOUND), FOUND).course.too_long


def test_a_short_night_needs_no_map() -> None:
    assert advised(Night(objects=10**6), FOUND).night.ranges == 1
    assert advised(Night(objects=10**7), FOUND).night.ranges == 64
    assert advised(replace(Night(objects=10**7), max_rate=50_000.0), FOUND).night.ranges == 64
    machine = Night(objects=10**9, machine=True)
    assert advised(machine, FOUND).night == machine, "a machine has no invocations that a map could spread"
