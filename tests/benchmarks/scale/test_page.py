"""The page, its picture and the command: their words, and that what is drawn is what was computed."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from benchmarks.page import between
from benchmarks.scale import page, words
from benchmarks.scale.__main__ import main
from benchmarks.scale.assumed import usual
from benchmarks.scale.find import simulate
from benchmarks.scale.mode import Mode
from benchmarks.scale.picture import Panel, picture
from benchmarks.scale.prices import request_prices
from tests.benchmarks.scale.figures import FOUND
from tests.support.paths import ROOT


def test_every_block_has_its_place_on_the_page() -> None:
    text = (ROOT / page.PAGE).read_text(encoding="utf-8")
    assert [name for name in page.BLOCKS if between(text, name, "\0") == text] == []


@pytest.mark.parametrize("name", page.BLOCKS)
def test_a_table_has_as_many_cells_in_each_row(name: str) -> None:
    rows = [line for line in page.BLOCKS[name](FOUND).splitlines() if line.startswith("|")]
    assert len(rows) > 2
    assert len({row.count(" | ") for row in rows}) == 1
    assert "nan" not in " ".join(rows)


def test_each_class_has_the_price_of_one_call_and_of_two() -> None:
    rows = [line.strip("| ").split(" | ") for line in page.BLOCKS["classes"](FOUND).splitlines()[2:]]
    dollars = {name: prices for names, *prices in rows for name in names.split(", ")}
    assert dollars["`STANDARD`"] == ["$0.40", "$0.80"]
    assert dollars["`GLACIER_IR`"] == ["$10.00", "$20.00"]
    assert dollars.keys() == {f"`{name}`" for name in request_prices().get}


def test_a_curve_goes_through_its_points() -> None:
    panel = Panel(
        title="<t>", across=(10, 100, 1000), series={"live": [1.0, 10.0, 100.0]}, low=0, high=2, unit="${}",
        dashed={"mixed": [(10, 100.0), (1000, 1.0)]}, marks=((10.0, "ten"),),
    )  # fmt: skip
    root = ElementTree.fromstring(picture("a & b", ("under", "it"), (panel,)))
    lines = [item.get("points", "").split() for item in root if item.tag.endswith("polyline")]
    live, mixed, mark = ([tuple(map(float, one.split(","))) for one in line] for line in lines)
    assert live[0][0] < live[1][0] < live[2][0]
    assert live[1][1] == pytest.approx((live[0][1] + live[2][1]) / 2), "equal factors are equal heights"
    assert mixed == [(live[0][0], live[2][1]), (live[2][0], live[0][1])]
    assert {at for at, _ in mark} == {mixed[-1][0]}
    words_of = [item.text for item in root if item.tag.endswith("text")]
    assert {"<t>", "a & b", "under", "$10", "ten"} <= set(words_of)


def test_the_drawing_has_three_curves_in_each_panel() -> None:
    root = ElementTree.fromstring(page.drawing())
    assert sum(item.tag.endswith("polyline") for item in root) == 10, "two with dashes, and a mark at their ends"


def test_a_machine_costs_no_function_and_a_weekly_inventory_concerns_mixed_nights_alone() -> None:
    rows = dict(line.strip("| ").split(" | ", 1) for line in page.BLOCKS["options"](FOUND).splitlines()[2:])
    machine = next(cells for name, cells in rows.items() if "machine" in name)
    assert all(cell.startswith("-$") for cell in machine.split(" | "))
    live, mixed, incremental = next(cells for name, cells in rows.items() if "each week" in name).split(" | ")
    assert (live, incremental) == ("+$0.00", "+$0.00")
    assert float(mixed.removeprefix("+$")) > 0.1, "what changed since an old report is asked again each night"


def test_each_size_has_its_time_and_dollars() -> None:
    rows = [line.strip("| ").split(" | ") for line in page.BLOCKS["ways"](FOUND).splitlines()[2:]]
    assert [row[0] for row in rows] == ["10⁶", "10⁷", "10⁸", "10⁹", "10¹⁰"]
    live = simulate(usual(Mode.LIVE, 10**6), FOUND)
    assert rows[0][1] == f"17 min, {words.dollars(live.dollars)}"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (words.power(10**9), "10⁹"), (words.power(10**10), "10¹⁰"), (words.power(3_000), "3,000"),
        (words.rounded(3_640_000), "3.6 million"), (words.rounded(170_999_999), "170 million"),
        (words.rounded(7_000), "7,000"), (words.rounded(None), "none up to 10¹²"), (words.rounded(12), "12"),
        (words.dollars(0.0), "$0.00"), (words.dollars(0.001), "below $0.01"), (words.dollars(7.5), "$7.50"),
        (words.dollars(25_344.2), "$25,344"), (words.duration(0.2), "1 s"), (words.duration(100), "2 min"),
        (words.duration(10_000), "2.8 h"), (words.duration(10**6), "11.6 days"), (words.duration(math.inf), "never"),
        (words.counted(2_001_000), "2,001,000"), (words.counted(20_010_000_000), "20 billion"),
        (words.counted(6.667), "6.67"), (words.percent(0.001), "0.1 %"),
    ],
)  # fmt: skip
def test_numbers_as_words(found: str, text: str) -> None:
    assert found == text


def test_the_bill_of_ones_own_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--objects", "3e8", "--mode", "mixed", "--changed", "0"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("300,000,000 objects, mixed: a map of 77 ranges, ")
    assert "calls on what changed" not in said
    assert "$0.75" in said, "3e8 rows of the Inventory"


def test_a_night_that_does_not_end_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--objects", "1e12", "--max-rate", "1"]) == 0
    assert "it does not end: a range needs" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [["--objects", "0"], ["--objects", "x"], ["--objects", "5", "--max-rate", "nan"]])
def test_a_wrong_number_is_refused_with_its_limits(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(wrong)
    assert raised.value.code == 2
    assert f"argument {wrong[-2]}: {wrong[-1]!r} is not a number from 1 to" in capsys.readouterr().err
