"""Tables of text: columns as wide as their cells, within the terminal, and nothing that moves the cursor."""

from __future__ import annotations

from auditor.reports.text_table import Column, text_table
from auditor.text import width
from tests.support.odd_keys import ODD_KEYS


def test_the_widest_column_gives_way_first_and_no_more_than_it_may() -> None:
    columns = (Column(), Column(least=4), Column(least=8, folds=True))
    rows = [("fixed", "a" * 12, "one two three four five")]
    assert list(text_table(columns, rows, 25)) == [
        "fixed  aaaaaaa…  one two",
        "                 three",
        "                 four",
        "                 five",
    ]
    assert next(text_table(columns, rows, 3)) == "fixed  aaa…  one two"


def test_a_column_without_a_text_is_left_out() -> None:
    columns = (Column("name"), Column("new", right=True), Column("key"))
    assert list(text_table(columns, [("a", "", "x"), ("b", "", "y")])) == ["name  key", "a     x", "b     y"]
    assert list(text_table(columns, [])) == []


def test_the_colour_of_a_cell_takes_no_room() -> None:
    columns = (Column("severity", colours={"high": "31"}), Column("rule"))
    assert list(text_table(columns, [("high", "O02"), ("low", "K01")])) == [
        "severity  rule",
        "\x1b[31mhigh\x1b[0m      O02",
        "low       K01",
    ]


def test_odd_cells_move_nothing_and_fit() -> None:
    for key in [*ODD_KEYS.values(), "漢" * 300, "\x1b]0;title\x07"]:
        for folds in (True, False):
            for line in text_table([Column(least=10, folds=folds), Column("keys", least=20)], [(key, key)], 50):
                assert (line.isprintable(), width(line) <= 50) == (True, True), ascii(line)
