"""Which storage classes are charged for being read."""

from __future__ import annotations

import pytest

from auditor.costs import CHARGED_CLASSES, charged


@pytest.mark.parametrize("storage_class", ["INTELLIGENT_TIERING", "STANDARD_IA", "ONEZONE_IA", "GLACIER_IR"])
def test_reading_these_costs(storage_class: str) -> None:
    assert charged(storage_class)
    assert storage_class in CHARGED_CLASSES


@pytest.mark.parametrize("storage_class", [None, "", "STANDARD", "REDUCED_REDUNDANCY", "GLACIER", "DEEP_ARCHIVE"])
def test_reading_these_does_not(storage_class: str | None) -> None:
    assert charged(storage_class) is None
