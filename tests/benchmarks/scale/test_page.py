"""The page, its picture and the command: their words, and that what is drawn is what was computed."""

from __future__ import annotations

import pytest

from benchmarks.page import between
from benchmarks.scale import page
from benchmarks.scale.__main__ import main
from tests.support.paths import ROOT


def test_every_block_has_its_place_on_the_page() -> None:
    text = (ROOT / page.PAGE).read_text(encoding="utf-8")
    assert [name for name in page.BLOCKS if between(text, name, "\0") == text] == []


def test_the_bill_of_ones_own_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--objects", "3e8", "--mode", "mixed", "--changed", "0"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("300,000,000 objects, mixed: 100 ranges, 2 at once, ")
    assert "calls on what changed" not in said
    assert "$0.75" in said, "3e8 rows of the Inventory"
