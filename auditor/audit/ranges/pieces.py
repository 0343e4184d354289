"""A piece of a bucket's keys: the keys seen, an estimate of the unseen ones, and the middle of these."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

LAST: Final = "\U0010ffff"
"""The last code point: after a prefix and this one come no keys with the prefix, because Unicode keeps it free."""
_MARKS: Final = 16
"""Number of keys of a page that are kept as marks, unless all are."""
_DEPTH: Final = 12
"""Number of characters of a text that count, after the prefix that it shares with others."""
_DEEPER: Final = 8
"""Number of characters from which on the keys of a page are in a folder of their own, deep in the piece."""
_GROWTH: Final = 12.0
"""Largest ratio of unseen keys to those seen: an estimate from few keys is worth no more."""
_LONGEST: Final = 1024
"""Largest number of bytes of a text after which a listing begins."""


class KeyPiece(Struct):
    """The keys after one text up to another one, of which the first ones are seen.

    first, last: the first and the last key seen. upto: None for no limit. count: number of keys seen. marks: some of
    them, each with the number of keys up to it. unseen: estimated number of the further keys. whole: True if there are
    none.
    """

    first: str
    last: str
    upto: str | None
    count: int = 0
    marks: list[tuple[int, str]] = field(default_factory=list)
    unseen: float = 0.0
    whole: bool = False
    page: tuple[str, int] = ("", 0)
    """The first key of the last page, and the number of its keys."""
    differing: frozenset[str] = frozenset()
    """The characters in which the keys of the last page differ."""

    @classmethod
    def of(cls, upto: str | None, keys: Sequence[str], *, more: bool, every: bool) -> KeyPiece:
        """Return the piece that begins with these keys, of which there is one at least."""
        piece = cls(keys[0], keys[-1], upto)
        piece.add(keys, more=more, every=every)
        return piece

    @property
    def size(self) -> float:
        """The number of keys in the piece, an estimate unless it is whole."""
        return self.count + self.unseen

    def add(self, keys: Sequence[str], *, more: bool, every: bool) -> None:
        """Add the keys that follow the last one seen. more: True if the piece has further ones. every: True if each of
        them becomes a mark.
        """
        if keys:
            step = 1 if every else max(1, len(keys) // _MARKS)
            self.marks += [(self.count + at + 1, keys[at]) for at in range(step - 1, len(keys), step)]
            self.count, self.last, self.page = self.count + len(keys), keys[-1], (keys[0], len(keys))
            turned = [key[::-1] for key in keys]
            begin, end = _shared(keys[0], keys[-1]), _shared(min(turned), max(turned))
            self.differing = frozenset("".join(key[begin : len(key) - end] for key in keys))
        self.end_at(self.upto, more=more)

    def end_at(self, upto: str | None, *, more: bool = True) -> None:
        """Take a text as the end of the piece. Its unseen keys are taken to be as dense as those of the last page."""
        self.upto = upto
        self.whole = not more or (upto is not None and upto <= self.last)
        begin, count = self.page
        letters, depth = self._letters(), _shared(begin, upto)
        first, last, end = (_place(text, depth, letters) for text in (begin, self.last, upto))
        dense = count * (end - last) / max(1, last - first)
        self.unseen = 0.0 if self.whole else max(1.0, min(_GROWTH * self.count, dense))

    def middle(self) -> str:
        """Return a text about half way between the last key seen and the end, or that key if there is none between.

        If the keys of the last page are in a folder of their own, deep in the piece, the text is the end of all keys
        with a prefix of half the depth: so the end of the folder is found.
        """
        depth, own = _shared(self.last, self.upto), _shared(self.page[0], self.last)
        if own - depth > _DEEPER:
            text = self.last[: (own + depth) // 2] + LAST
        else:
            letters = self._letters()
            low, high = (_place(text, depth, letters) for text in (self.last, self.upto))
            text = _text_between(self.last[:depth], low, high, letters)
        between = text > self.last and (self.upto is None or text < self.upto)
        return text if between and len(text.encode()) <= _LONGEST else self.last

    def _letters(self) -> str:
        """Return the characters by which texts of the piece have their places, in order: those in which the keys of the
        last page differ, and those in which the last key differs from the end.
        """
        depth = _shared(self.last, self.upto)
        ends = (text[depth : depth + 1] for text in (self.last, self.upto or ""))
        return "".join(sorted(self.differing.union(*ends)))


def _place(text: str | None, depth: int, letters: str) -> int:
    """Return the place of a text among the texts of these letters that share its first `depth` characters; None is the
    end of all.
    """
    base, place = len(letters) + 2, 0
    if text is None:
        return base**_DEPTH
    part = text[depth : depth + _DEPTH]
    for character in part:
        place = place * base + bisect_left(letters, character) + 1
    return int(place * base ** (_DEPTH - len(part)))


def _text_between(prefix: str, low: int, high: int, letters: str) -> str:
    """Return a short text that begins with a prefix and has a place about half way between two others."""
    text, rest, width = prefix, (low + high) // 2, (len(letters) + 2) ** _DEPTH
    while width > 1 and width > (high - low) // 8:
        width //= len(letters) + 2
        digit, rest = divmod(rest, width)
        if digit == 0:
            break
        text += (letters + LAST)[digit - 1]
    return text


def _shared(one: str, other: str | None) -> int:
    """Return the number of characters with which both texts begin."""
    pairs = enumerate(zip(one, other or "", strict=False))
    return next((at for at, (mine, its) in pairs if mine != its), min(len(one), len(other or "")))
