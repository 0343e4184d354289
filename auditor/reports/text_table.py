"""Lay out text for a terminal: tables of columns, and lines with a label on their left. All of it is safe to print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from msgspec import Struct

from auditor.text import harmless, shorten, visible, width

LABEL: Final = 16
MOST: Final = 10
"""Largest number of names that are shown with their numbers; the other names are only counted."""
Cell = str | tuple[str, ...]
"""The text of a cell, or its lines."""


class Column(Struct, frozen=True):
    """One column of a table.

    title: header of the column. right: True for numbers, which are aligned on the right. least: smallest width to which
    the column shrinks where the line has no room; None for a column that never shrinks. folds: True to continue a cell
    that is too long on the next line, False to cut it. colours: ECMA-48 codes by the cells that have a colour.
    """

    title: str = ""
    right: bool = False
    least: int | None = None
    folds: bool = False
    colours: Mapping[str, str] = {}


def text_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    room: int | None = None,
    *,
    indent: str = "",
    gap: str = "  ",
) -> Iterator[str]:
    """Yield the lines of a table, its header first if a column has a title. A column is as wide as its widest cell;
    a column without a text in its cells is left out.

    rows: a cell for each column; backslashes stay, as results of visible() have them. room: width of a line; None if
    lines may be of any width. indent: begins each line. gap: stands between two columns.
    """
    safe = [list(map(_safe, row)) for row in rows]
    used = [at for at in range(len(columns)) if any(any(row[at]) for row in safe)]
    columns = [columns[at] for at in used]
    titles = [[_safe(column.title) for column in columns]] if any(column.title for column in columns) else []
    cells = [*titles, *([row[at] for at in used] for row in safe)]
    widths = [max(width(line) for cell in column for line in cell) for column in zip(*cells, strict=True)]
    if room is not None:
        _shrink(widths, columns, room - len(indent) - len(gap) * (len(columns) - 1))
    for row in cells:
        for lines in zip_longest(*map(_lines, row, widths, columns), fillvalue=""):
            yield f"{indent}{gap.join(map(_aligned, lines, widths, columns))}".rstrip()


def _safe(cell: Cell) -> tuple[str, ...]:
    return tuple(map(harmless, (cell,) if isinstance(cell, str) else cell)) or ("",)


def _lines(cell: Iterable[str], size: int, column: Column) -> Iterator[str]:
    """Yield the lines of a cell: each is folded or cut to the width of the column."""
    for text in cell:
        yield from folded(text, size, "") if column.folds else (shorten(text, size),)


def _shrink(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Make the widest columns narrower until the line has room for all."""
    while sum(widths) > room:
        wide = [at for at, one in enumerate(columns) if one.least is not None and widths[at] > one.least]
        if not wide:
            return
        widths[max(wide, key=widths.__getitem__)] -= 1


def _aligned(cell: str, size: int, column: Column) -> str:
    text, space = painted(cell, column.colours.get(cell, "")), " " * (size - width(cell))
    return f"{space}{text}" if column.right else f"{text}{space}"


def painted(text: str, code: str) -> str:
    """Return the text in a colour. code: of ECMA-48, such as "31" for red; "" for no colour."""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def linked(text: str, path: str) -> str:
    """Return the text as a hyperlink (OSC 8) to a local file. path: absolute; the text stays as it is for another one.

    The URI has ASCII letters and `%` escapes only, so that no path ends the escape sequence.
    """
    return f"\x1b]8;;{Path(path).as_uri()}\x1b\\{text}\x1b]8;;\x1b\\" if path.startswith("/") else text


class TableLayout(Struct, frozen=True):
    """Lays out text with a label on its left. The first line of each method's result has the label.

    columns: width of a line. label: width of the label.
    """

    columns: int
    label: int = LABEL

    @property
    def room(self) -> int:
        """Width of the text to the right of the label, in columns."""
        return self.columns - self.label

    def counts(self, label: str, counts: Mapping[str, int]) -> Iterator[str]:
        """Yield lines of names and numbers, as many in a line as fit. The names are few words of ours."""
        return self.pairs(label, ((name.replace("_", " "), number) for name, number in counts.items()))

    def pairs(self, label: str, pairs: Iterable[tuple[str, int]]) -> Iterator[str]:
        """Yield lines of the first MOST names and numbers, and say how many more there are. A long name is cut."""
        cells = [f"{visible(name)} {number:,}" for name, number in pairs]
        more = len(cells) - MOST
        line = ""
        for text in [*cells[:MOST], f"and {more} more"] if more > 0 else cells:
            cell = shorten(text, self.room)
            if line and width(f"{line}   {cell}") > self.room:
                yield labelled(label, line, self.label)
                label, line = "", ""
            line = f"{line}   {cell}" if line else cell
        if line:
            yield labelled(label, line, self.label)

    def listed(self, label: str, texts: Iterable[str]) -> Iterator[str]:
        """Yield each text on a line of its own; a long text continues on further lines."""
        for text in texts:
            for line in folded(harmless(text), self.room):
                yield labelled(label, line, self.label)
                label = ""

    def keyed(self, label: str, rows: Iterable[tuple[str, str]], more: int) -> Iterator[str]:
        """Yield a line for each row of (words, object key); a long key is cut. more: number of hidden rows."""
        for words, key in rows:
            yield labelled(label, words + shorten(visible(key), self.room - len(words)), self.label)
            label = ""
        if more > 0:
            yield labelled(label, f"and {more:,} more", self.label)


def labelled(label: str, text: str, columns: int = LABEL) -> str:
    if len(label) >= columns:
        return f"{label}\n{' ' * columns}{text}"
    return f"{label:<{columns}}{text}"


def folded(text: str, columns: int, further: str = "  ") -> Iterator[str]:
    """Yield the text in lines that are at most `columns` wide, broken at a space if there is one. further: begins each
    line but the first.
    """
    indent = ""
    while width(indent + text) > columns:
        fits = len(shorten(text, columns - len(indent))) - 1
        space = text.rfind(" ", 1, fits + 1)
        cut = space if space > 0 else fits
        yield indent + text[:cut]
        text = text[cut:].removeprefix(" ")
        indent = further
    yield indent + text
