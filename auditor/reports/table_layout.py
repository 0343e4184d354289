"""Lay out labelled lines for a terminal of a given width: wrapped at spaces, safe to print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from auditor.text import harmless, shorten, visible, width

LABEL: Final = 16
MOST: Final = 10
"""Largest number of names that are shown with their numbers; the other names are only counted."""


class TableLayout(Struct, frozen=True):
    """Lays out text with a label on its left, for a terminal. The first line of each method's result has the label.
    columns: width of a line. label: width of the label.
    """

    columns: int
    label: int = LABEL

    @property
    def room(self) -> int:
        """Width of the text to the right of the label, in columns."""
        return self.columns - self.label

    def counts(self, label: str, counts: Mapping[str, int]) -> Iterator[str]:
        """Yield lines of names and numbers, as many in a line as fit. The names are short."""
        yield from self._wrapped(label, [f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items()])

    def pairs(self, label: str, pairs: Iterable[tuple[str, int]]) -> Iterator[str]:
        """Yield lines of the first MOST names and numbers, and say how many more there are. A long name is cut."""
        cells = [f"{visible(name)} {number:,}" for name, number in pairs]
        more = len(cells) - MOST
        yield from self._wrapped(label, [*cells[:MOST], f"and {more} more"] if more > 0 else cells)

    def listed(self, label: str, texts: Iterable[str]) -> Iterator[str]:
        """Yield each text on a line of its own; a long text continues on further lines."""
        for text in texts:
            for line in folded(harmless(text), self.room):
                yield labelled(label, line, self.label)
                label = ""

    def folded(self, text: str) -> Iterator[str]:
        """Yield a text without a label, over the whole width."""
        return folded(harmless(text), self.columns)

    def keyed(self, label: str, rows: Iterable[tuple[str, str]], more: int) -> Iterator[str]:
        """Yield a line for each row of (words, object key); a long key is cut. more: number of hidden rows."""
        for words, key in rows:
            yield labelled(label, words + shorten(visible(key), self.room - len(words)), self.label)
            label = ""
        if more > 0:
            yield labelled(label, f"and {more:,} more", self.label)

    def _wrapped(self, label: str, cells: list[str]) -> Iterator[str]:
        line = ""
        for text in cells:
            cell = shorten(text, self.room)
            if line and width(f"{line}   {cell}") > self.room:
                yield labelled(label, line, self.label)
                label, line = "", cell
            else:
                line = f"{line}   {cell}" if line else cell
        if line:
            yield labelled(label, line, self.label)


def labelled(label: str, text: str, columns: int = LABEL) -> str:
    if len(label) >= columns:
        return f"{label}\n{' ' * columns}{text}"
    return f"{label:<{columns}}{text}"


def folded(text: str, columns: int) -> Iterator[str]:
    """Yield the text in lines that are at most `columns` wide, broken at a space if there is one."""
    indent = ""
    while width(indent + text) > columns:
        fits = len(shorten(text, columns - len(indent))) - 1
        space = text.rfind(" ", 1, fits + 1)
        cut = space if space > 0 else fits
        yield indent + text[:cut]
        text = text[cut:].removeprefix(" ")
        indent = "  "
    yield indent + text
