"""Estimate the share of a bucket's keys between two texts, from the characters that follow each other in known keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

_DEPTH: Final = 12
"""Number of characters of a text that count, after the prefix that both ends share."""


class KeyPlaces:
    """Gives each text a place between 0 and 1 in the order of the keys below a prefix.

    The space below a prefix is divided evenly between the characters that may come next. These are the characters that
    followed the same one in a known key, so that no alphabet is guessed: after a hexadecimal digit come sixteen digits,
    after the slash of a date two or three.
    """

    def __init__(self) -> None:
        self._after: dict[str, list[str]] = {}

    def learn(self, keys: Iterable[str]) -> None:
        """Take note of the characters of these keys."""
        for key in keys:
            before = ""
            for character in key:
                found = self._after.setdefault(before, [])
                at = bisect_left(found, character)
                if at == len(found) or found[at] != character:
                    found.insert(at, character)
                before = character

    def place(self, text: str | None, shared: str) -> float:
        """Return the place of a text that begins with the prefix `shared`; None is the end of all such keys."""
        if text is None:
            return 1.0
        low, width, before = 0.0, 1.0, shared[-1:]
        for character in text[len(shared) : len(shared) + _DEPTH]:
            known = self._after.get(before, [])
            at, parts = bisect_left(known, character), len(known) + 1  # the first part is the text that ends here
            low += width * (at + 1) / parts
            if at == len(known) or known[at] != character:
                break
            width, before = width / parts, character
        return low

    def text_at(self, place: float, shared: str, precision: float) -> str:
        """Return a text near a place, as short as the precision allows. It begins with the prefix `shared`."""
        text, width, before = shared, 1.0, shared[-1:]
        for _ in range(_DEPTH):
            known = self._after.get(before, [])
            parts = len(known) + 1
            part = min(int(place * parts), parts - 1)
            if part == 0:
                break
            before = known[part - 1]
            text, place, width = text + before, place * parts - part, width / parts
            if width < precision:
                break
        return text
