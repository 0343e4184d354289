"""CSV: one entry a row. No cell can be run as a formula, and no cell has a line end or a hidden character."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Final

from auditor.model.summary import Summary
from auditor.offline.formats.base import COLUMNS, FormatOptions, RunLines, entries
from auditor.text import visible

_FORMULA: Final = re.compile("\\s*['=+\\-@|%＝＋－＠]")
"""The beginnings of a cell that a spreadsheet may run as a formula, the full-width forms included, and the apostrophe
that marks such a cell."""

_SIGNS: Final = frozenset(" \t\u00a0\u202f.,:/'_-+%()$\u20ac\u00a3\u00a5")
"""The characters of numbers, dates and amounts of money, besides digits and letters."""
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_WITH_MONTH: Final = frozenset({*_MONTHS, *(month[:3] for month in _MONTHS), "sept"})
_AFTER_DIGITS: Final = frozenset({"", "e", "t", "tz", "z", "a", "p", "am", "pm"})
"""The letters of a number with an exponent, or of a time."""
_DATES: Final = frozenset({"since"})
"""The columns whose texts are dates."""


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the header, and a row for each entry of the run."""
    yield csv_row(COLUMNS)
    for entry in entries(summary, lines):
        yield csv_row(tuple(_cell(name, getattr(entry, name) or "") for name in COLUMNS))


def _cell(column: str, text: str) -> str:
    return neutral(text) if column in _DATES else as_text(text)


def as_text(text: str) -> str:
    """Return the text of a cell as neutral() does, with an apostrophe too before a text that a spreadsheet would take
    for a number, a date or a truth value.
    """
    return f"'{visible(text)}" if _is_value(text) else neutral(text)


def _is_value(text: str) -> bool:
    """True if a spreadsheet may take the whole text for a number, a date, a time or a truth value: 1e5 for 100000."""
    word = text.strip().lower()
    if not any(map(str.isdigit, word)):
        return word in ("true", "false")
    letters = "".join(filter(str.isalpha, word))
    if not all(one.isalpha() or one.isdigit() or one in _SIGNS for one in word):
        return False
    return letters in _WITH_MONTH or (letters in _AFTER_DIGITS and not word[0].isalpha())


def neutral(text: str) -> str:
    """Return the text of a cell: unprintable characters are escaped, backslashes are doubled, and an apostrophe stands
    before a text that a spreadsheet would run.
    """
    shown = visible(text)
    return f"'{shown}" if _FORMULA.match(shown) else shown


class _Echo:
    """Takes a row as a file does, and returns it: the writer returns the result of write()."""

    def write(self, text: str) -> str:
        return text


_writer = csv.writer(_Echo(), lineterminator="\r\n")


def csv_row(cells: Sequence[str]) -> str:
    """Return a row with its line end. The cells are those of neutral(), or numbers."""
    row: str = _writer.writerow(cells)
    return row
