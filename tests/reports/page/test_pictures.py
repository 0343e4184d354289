"""Pictures of the page: areas fit the numbers, bars add up, a night without a run leaves a gap."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.summary import ExceptedCounts
from auditor.reports.page.pictures import WIDTH, coverage_bar, squarified
from tests.support.samples.reports import denied, gone, judged, sample_summary, tally_of


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=40))
@example([1, 141_855_395])
def test_areas_of_the_map_are_in_proportion_and_fill_it(numbers: list[int]) -> None:
    numbers.sort(reverse=True)
    boxes = squarified(numbers, (4, 8, 1072, 312))
    total = sum(numbers)
    for number, (x, y, width, height) in zip(numbers, boxes, strict=True):
        assert width * height == pytest.approx(1072 * 312 * number / total, rel=1e-6)
        assert x >= 4 - 1e-6
        assert y >= 8 - 1e-6
        assert x + width <= 1076 + 1e-6
        assert y + height <= 320 + 1e-6


def test_parts_of_the_coverage_add_up_to_the_listed_objects() -> None:
    made = sample_summary(
        tally_of(*(judged(f"k{at}") for at in range(500)), judged("o", verdict=Verdict.EXPOSED), denied("u"), gone("v"))
    )
    bar = coverage_bar(made)
    assert sum(part.number for part in bar.parts) == bar.listed == 503
    assert bar.private == 500
    assert [part.sign.name for part in bar.below] == ["exposed", "unknown", "vanished"]
    last = bar.below[-1]
    assert last.x + last.width == pytest.approx(WIDTH, abs=0.3)
    assert [f"{part.number} {part.sign.label}" for part in bar.parts] == [
        "1 exposed",
        "1 unknown",
        "1 vanished",
        "500 private",
    ]


def test_objects_that_are_open_on_purpose_are_counted_once() -> None:
    made = sample_summary(tally_of(*(judged(f"k{at}", verdict=Verdict.EXPOSED) for at in range(9)), judged("p")))
    bar = coverage_bar(replace(made, excepted=ExceptedCounts({"exposed": 4})))
    assert {part.sign.label: part.number for part in bar.parts} == {"exposed": 5, "public by intent": 4, "private": 1}
