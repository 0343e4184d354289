"""The page, its picture and the command: their words, and that what is drawn is what was computed."""

from __future__ import annotations

import pytest

from benchmarks.page import between
from benchmarks.scale import page, words
from benchmarks.scale.__main__ import main
from benchmarks.scale.assumed import usual
from benchmarks.scale.find import simulate
from benchmarks.scale.mode import Mode
from tests.benchmarks.scale.figures import FOUND
from tests.support.paths import ROOT


def test_every_block_has_its_place_on_the_page() -> None:
    text = (ROOT / page.PAGE).read_text(encoding="utf-8")
    assert [name for name in page.BLOCKS if between(text, name, "\0") == text] == []


def test_each_size_has_its_time_and_dollars() -> None:
    rows = [line.strip("| ").split(" | ") for line in page.BLOCKS["ways"](FOUND).splitlines()[2:]]
    assert [row[0] for row in rows] == ["10⁶", "10⁷", "10⁸", "10⁹", "10¹⁰"]
    live = simulate(usual(Mode.LIVE, 10**6), FOUND)
    assert rows[0][1] == f"17 min, {words.dollars(live.dollars)}"


def test_the_bill_of_ones_own_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--objects", "3e8", "--mode", "mixed", "--changed", "0"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("300,000,000 objects, mixed: a map of 77 ranges, ")
    assert "calls on what changed" not in said
    assert "$0.75" in said, "3e8 rows of the Inventory"


@pytest.mark.parametrize("wrong", [["--objects", "0"], ["--objects", "x"], ["--objects", "5", "--max-rate", "nan"]])
def test_a_wrong_number_is_refused_with_its_limits(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(wrong)
    assert raised.value.code == 2
    assert f"argument {wrong[-2]}: {wrong[-1]!r} is not a number from 1 to" in capsys.readouterr().err
