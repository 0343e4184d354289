"""Patterns of values in a configuration, matched in linear time whatever the value: a stranger may have written it.

The syntax is the usual one: characters, `.`, `[a-z]`, `[^a-z]`, `\\d`, `\\w`, `\\s`, groups, `|`, and the repetitions
`?`, `*`, `+`, `{2}`, `{2,}`, `{2,5}`. A pattern always means the whole value. Python's own expressions go back and try
again, so that a short value can cost minutes; these keep all possible positions at once (Glushkov's construction).
Python only tells if one character belongs to a class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, Self

from msgspec import Struct, field

MOST_STATES: Final = 500
"""Largest size of a pattern, its repetitions written out."""
MOST_CHARACTERS: Final = 1000
_MOST_GROUPS: Final = 50
_COUNTS: Final = re.compile(r"[?*+]|\{([0-9]{1,3})(?:(,)([0-9]{0,3}))?\}")
_SIGNS: Final = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class _Item(NamedTuple):
    """A part of a pattern with its repetitions. part: Python's expression for one character, or a group: several
    sequences of items, one of which matches. most: None for no limit.
    """

    part: str | _Group
    least: int = 1
    most: int | None = 1


_Group = tuple[tuple[_Item, ...], ...]


class _Ends(NamedTuple):
    """The positions with which a part of a pattern can begin and end: those of the characters in the pattern, its
    repetitions written out. empty: True if the part can match no character at all.
    """

    empty: bool
    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()


class Pattern(Struct):
    """A parsed pattern, its repetitions written out."""

    _readers: list[re.Pattern[str]] = field(default_factory=list)
    """The class of the characters that each position reads."""
    _following: list[set[int]] = field(default_factory=list)
    """The positions that may follow each position."""
    _whole: _Ends = _Ends(True)
    _parts: int = 0

    @classmethod
    @lru_cache(64)
    def parse(cls, text: str) -> Self:
        """Parse a pattern. Raises ValueError, whose message is made for the user."""
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"a pattern has at most {MOST_CHARACTERS} characters")
        pattern = cls()
        pattern._whole = pattern._add_group(_Parser(text).whole())
        return pattern

    def matches(self, value: str) -> bool:
        """True if the pattern matches the whole value."""
        if not value:
            return self._whole.empty
        now: Iterable[int] = self._whole.first
        for character in value:
            read = [position for position in now if self._readers[position].match(character)]
            now = set().union(*(self._following[position] for position in read))
        return not self._whole.last.isdisjoint(read)

    def _add_group(self, branches: _Group) -> _Ends:
        ends = [self._add_sequence(branch) for branch in branches]
        first, last = (frozenset().union(*some) for some in ([one.first for one in ends], [one.last for one in ends]))
        return _Ends(any(one.empty for one in ends), first, last)

    def _add_sequence(self, items: Iterable[_Item]) -> _Ends:
        empty, first, last = _Ends(True)
        for part, least, most in items:
            for number in range(least + 1 if most is None else most):
                one = self._add(part)
                if most is None and number == least:
                    self._link(one.last, one.first)
                self._link(last, one.first)
                first = first | one.first if empty else first
                skipped = one.empty or number >= least
                empty, last = empty and skipped, one.last | last if skipped else one.last
        return _Ends(empty, first, last)

    def _add(self, part: str | _Group) -> _Ends:
        """Add the positions of one part. Raises ValueError if the pattern becomes too large."""
        self._parts += 1
        if self._parts > MOST_STATES:
            raise ValueError(f"a pattern has at most {MOST_STATES} parts, its repetitions written out")
        if not isinstance(part, str):
            return self._add_group(part)
        position = frozenset({len(self._readers)})
        self._readers.append(re.compile(part, re.ASCII | re.DOTALL))
        self._following.append(set())
        return _Ends(False, position, position)

    def _link(self, before: frozenset[int], after: frozenset[int]) -> None:
        for position in before:
            self._following[position] |= after


class _Parser:
    """Reads the text of a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open = 0

    def whole(self) -> _Group:
        branches = self._branches()
        if self._at < len(self._text):
            raise ValueError("a pattern has a closing parenthesis without an opening one")
        return branches

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, what: str) -> str:
        """Take one character. Raises ValueError if the text ends: `what` is unfinished."""
        found = self._peek()
        if not found:
            raise ValueError(f"a pattern ends within {what}")
        self._at += 1
        return found

    def _branches(self) -> _Group:
        branches: list[list[_Item]] = [[]]
        while (one := self._peek()) and one != ")":
            if one == "|":
                self._at += 1
                branches.append([])
            else:
                branches[-1].append(self._item())
        return tuple(map(tuple, branches))

    def _item(self) -> _Item:
        item = _Item(self._part(), *self._counts())
        if (self._peek() or " ") in "?*+{":
            raise ValueError(
                "a pattern repeats something that is repeated already: put parentheses around the inner one"
            )
        return item

    def _part(self) -> str | _Group:
        one = self._take("a part")
        if one == "(":
            return self._group()
        if one == "[":
            return self._set()
        if one in "?*+{":
            raise ValueError(f"a pattern repeats nothing: write \\{one} for the character itself")
        if one in "^$":
            raise ValueError(f"a pattern always means the whole value: leave out {one}, or write \\{one}")
        return one if one == "." else self._escaped(one)

    def _group(self) -> _Group:
        self._open += 1
        if self._open > _MOST_GROUPS:
            raise ValueError(f"a pattern has at most {_MOST_GROUPS} groups within each other")
        if self._peek() == "?":
            raise ValueError("a pattern may have only plain groups: no (?")
        branches = self._branches()
        self._take("a group")
        self._open -= 1
        return branches

    def _escaped(self, one: str) -> str:
        """Return Python's expression for the character that was taken, or for the escape that it begins. It ends with
        the character itself, unless it is a class: a backslash with a letter.
        """
        if one != "\\":
            return re.escape(one)
        one = self._take("an escape")
        if one.isalnum() and one not in "dwsDWS":
            raise ValueError("a pattern has only the escapes \\d, \\w, \\s, \\D, \\W, \\S and those of signs")
        return f"\\{one}" if one.isalnum() else re.escape(one)

    def _set(self) -> str:
        text = "[^" if self._peek() == "^" else "["
        self._at += len(text) - 1
        begun = text
        while (one := self._take("a set")) != "]" or text == begun:
            low = self._escaped(one)
            if low[1:] in ("D", "W", "S"):
                raise ValueError("a set in a pattern cannot have \\D, \\W or \\S")
            following = self._text[self._at : self._at + 2]
            text += low
            if not _is_class(low) and following[:1] == "-" and following != "-]":
                self._at += 1
                high = self._escaped(self._take("a set"))
                if _is_class(high) or high[-1] < low[-1]:
                    raise ValueError("a range in a pattern goes from a lower character to a higher one")
                text += f"-{high}"
        return f"{text}]"

    def _counts(self) -> tuple[int, int | None]:
        """Take the repetitions after a part: the smallest and the largest number."""
        one = self._peek()
        if not one or one not in "?*+{":
            return 1, 1
        found = _COUNTS.match(self._text, self._at)
        if found is None:
            raise ValueError(
                "a pattern's repetition is {2}, {2,} or {2,5}, up to 999; write \\{ for the character itself"
            )
        self._at = found.end()
        if one in _SIGNS:
            return _SIGNS[one]
        least = int(found[1])
        most = least if not found[2] else int(found[3]) if found[3] else None
        if most is not None and most < least:
            raise ValueError("a pattern's repetition goes from a lower number to a higher one")
        return least, most


def _is_class(expression: str) -> bool:
    return expression[:1] == "\\" and expression[1:].isalpha()
