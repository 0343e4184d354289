"""The storage classes that charge for a read."""

from __future__ import annotations

import pytest

from auditor.s3.storage_class import charged


@pytest.mark.parametrize("storage_class", ["INTELLIGENT_TIERING", "STANDARD_IA", "ONEZONE_IA", "GLACIER_IR"])
def test_reading_these_costs(storage_class: str) -> None:
    assert charged(storage_class)


@pytest.mark.parametrize(("size", "costs"), [(0, False), (131_071, False), (131_072, True), (None, True)])
def test_intelligent_tiering_leaves_small_objects_where_they_are(size: int | None, costs: bool) -> None:
    assert (charged("INTELLIGENT_TIERING", size) is not None) is costs
    assert charged("STANDARD_IA", size)


@pytest.mark.parametrize("storage_class", [None, "", "STANDARD", "REDUCED_REDUNDANCY", "GLACIER", "DEEP_ARCHIVE"])
def test_reading_these_does_not(storage_class: str | None) -> None:
    assert charged(storage_class) is None
