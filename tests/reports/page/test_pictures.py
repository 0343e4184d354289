"""Pictures of the page: areas fit the numbers, bars add up, a night without a run leaves a gap."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditor.reports.page.pictures import squarified


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
