"""The page of measurements has a place for each part."""

from __future__ import annotations

from benchmarks.page import between
from benchmarks.parts import PARTS
from tests.support.paths import ROOT


def test_every_part_has_its_place_on_the_page() -> None:
    text = (ROOT / "docs" / "performance.md").read_text()
    assert [name for name in (*PARTS, "gates") if between(text, name, "\0") == text] == []
