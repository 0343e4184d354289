"""CSV: one entry a row. No cell can be run as a formula, and no cell has a line end or a hidden character."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Final

from auditor.model.summary import Summary
from auditor.reports.formats.base import COLUMNS, FormatOptions, RunLines, entries
from auditor.text import visible

_FORMULA: Final = re.compile("\\s*['=+\\-@|%＝＋－＠]")
"""The beginnings of a cell that a spreadsheet may run as a formula, the full-width forms included, and the apostrophe
that marks such a cell."""


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the header, and a row for each entry of the run."""
    yield csv_row(COLUMNS)
    for entry in entries(summary, lines):
        yield csv_row(tuple(neutral(getattr(entry, name) or "") for name in COLUMNS))


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
