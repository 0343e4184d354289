"""Ranges, invocations, transitions and seconds of nights that were computed by hand."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks.scale import bill
from benchmarks.scale import night as nights
from benchmarks.scale.bill import simulate, total
from benchmarks.scale.measured import Mode
from benchmarks.scale.night import Night, pace
from tests.benchmarks.scale.figures import FOUND
from tests.support.paths import ROOT


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


@pytest.mark.parametrize(
    ("night", "ranges", "invocations", "transitions", "seconds"),
    [
        # 400,200 calls at 2,000 a second: within the deadline
        (Night(objects=200_000), 1, 1, 0, 200.1 + 0.5),
        # 2,001,000 calls: two invocations on one range, Begin and Conclude
        (Night(objects=10**6), 1, 4, 8 + 2 + 2, 1000.5 + 4 * 0.5),
        # 20,010,005 calls, at most 3,840,000 in a range; at 950 a second a range takes 3,510 seconds, five invocations
        (Night(objects=10**7), 6, 3 + 6 * 5, 8 + 6 * (2 + 2 * 5), 20_010_005 / 1900 + 3 * 5 * 0.5 + 3 * 0.5),
        # the rows of an Inventory: 1,400 seconds to spread them are two invocations of Begin
        (Night(objects=10**8, mode=Mode.MIXED), 34, 3 + 1 + 34, 8 + 3 + 34 * 4, None),
        # an estate: the first function does 182 buckets, of 20,010 calls at 4,267 a second, and leaves 318
        (Night(objects=10**4, buckets=500), 1, 3 + 318, 8 + 318 * 4, 855 + 4 * 10.005 + 6 * 0.5),
        (Night(objects=10**3, buckets=500), 1, 1, 0, 500 * 2001 * 0.03 / 128),
    ],
)
def test_the_course_of_a_night(
    night: Night, ranges: int, invocations: int, transitions: int, seconds: float | None
) -> None:
    course = pace(night, FOUND)
    assert (night.ranges, course.invocations, course.transitions) == (ranges, invocations, transitions)
    assert seconds is None or course.seconds == pytest.approx(seconds)
    assert total(simulate(night, FOUND).terms, (bill.STEP_FUNCTIONS,)) == pytest.approx(transitions * 0.025 / 1000)


def test_an_odd_range_has_the_whole_ceiling_at_the_end() -> None:
    night = Night(objects=5 * 10**6)
    assert (night.ranges, night.at_once) == (3, 2)
    course, calls = pace(night, FOUND), night.s3_calls / 3
    assert course.seconds == pytest.approx(calls / 950 + calls / 2000 + 2 * course.hops * 0.5 + 3 * 0.5)


def test_the_transitions_are_those_of_the_state_machine() -> None:
    states = json.loads((ROOT / "deploy" / "machine" / "audit.asl.json").read_text(encoding="utf-8"))["States"]
    children = states["Ranges"]["ItemProcessor"]["States"]
    counted = {*nights.START_STATES, *nights.AGAIN_STATES}
    assert set(states) - counted == {"Wait", "Incomplete", "Verify", "IsVerified", "VerifyOn", "Verified"}
    assert set(children) == {*nights.RANGE_STATES, nights.CHILD_STATES[1]}


@pytest.mark.parametrize(("rate", "at_once"), [(100, 2), (10_000, 3), (1e9, 100), (float("inf"), 10)])
def test_functions_at_once_follow_from_the_ceiling(rate: float, at_once: int) -> None:
    assert Night(objects=1, max_rate=rate).at_once == at_once
