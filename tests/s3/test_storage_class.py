"""The storage classes that charge for a read."""

from __future__ import annotations

from auditor.s3.storage_class import charged


def test_reading_some_classes_costs() -> None:
    for storage_class in ("INTELLIGENT_TIERING", "STANDARD_IA", "ONEZONE_IA", "GLACIER_IR"):
        assert charged(storage_class)
    for free in (None, "", "STANDARD", "REDUCED_REDUNDANCY", "GLACIER", "DEEP_ARCHIVE"):
        assert charged(free) is None


def test_intelligent_tiering_leaves_small_objects_where_they_are() -> None:
    for size, costs in ((0, False), (131_071, False), (131_072, True), (None, True)):
        assert (charged("INTELLIGENT_TIERING", size) is not None) is costs
        assert charged("STANDARD_IA", size)
