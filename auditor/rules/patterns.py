"""Patterns of values in a configuration, matched in linear time whatever the value: a stranger may have written it.

The syntax is the usual one: characters, `.`, `[a-z]`, `[^a-z]`, `\\d`, `\\w`, `\\s`, groups, `|`, and the repetitions
`?`, `*`, `+`, `{2}`, `{2,}`, `{2,5}`. A pattern always means the whole value. Python's own expressions go back and try
again, so that a short value can cost minutes; these keep all possible states at once (Thompson's construction).
"""

from __future__ import annotations

import re
import string
from functools import lru_cache
from typing import Final, NamedTuple, Self

from msgspec import Struct, field

MOST_STATES: Final = 500
"""Largest size of a pattern, its repetitions written out."""
MOST_CHARACTERS: Final = 1000
_MOST_GROUPS: Final = 50
_CLASSES: Final = {
    "d": frozenset(string.digits),
    "w": frozenset(string.ascii_letters + string.digits + "_"),
    "s": frozenset(string.whitespace),
}
_COUNTS: Final = re.compile(r"\{([0-9]{1,3})(,?)([0-9]{0,3})\}")
_ENDLESS: Final = 10**6


class _Characters(NamedTuple):
    """A set of characters: singles, and ranges from one to another; if negated, all other characters."""

    singles: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False

    def has(self, character: str) -> bool:
        found = character in self.singles or any(low <= character <= high for low, high in self.ranges)
        return found is not self.negated


class _Split(NamedTuple):
    """A state that reads nothing, and goes on in each of the states `to`."""

    to: tuple[int, ...]


class _Choice(NamedTuple):
    """A part of a pattern: one of several sequences of items."""

    branches: tuple[tuple[_Item, ...], ...]


class _Item(NamedTuple):
    """A part of a pattern with its repetitions. most: _ENDLESS for no limit."""

    part: _Characters | _Choice
    least: int = 1
    most: int = 1


class Pattern(Struct):
    """A parsed pattern. next_after: for each state, the states that can read the next character, or the end."""

    readers: list[_Characters | None]
    next_after: list[tuple[int, ...]]

    @classmethod
    @lru_cache(64)
    def parse(cls, text: str) -> Self:
        """Parse a pattern. Raises ValueError, whose message is made for the user."""
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"a pattern has at most {MOST_CHARACTERS} characters")
        program = _Program()
        program.add(_Parser(text).whole())
        program.states.append(None)
        readers = [state if isinstance(state, _Characters) else None for state in program.states]
        return cls(readers, [program.reading(number) for number in range(len(readers))])

    def matches(self, value: str) -> bool:
        """True if the pattern matches the whole value."""
        end = len(self.readers) - 1
        now = self.next_after[0]
        for character in value:
            following: dict[int, None] = {}
            for number in now:
                reader = self.readers[number]
                if reader is not None and reader.has(character):
                    following.update(dict.fromkeys(self.next_after[number + 1]))
            if not following:
                return False
            now = tuple(following)
        return end in now


class _Program(Struct):
    """The states of a pattern. A state that reads a character goes on in the state after it. None is the end."""

    states: list[_Characters | _Split | None] = field(default_factory=list)
    _work: int = 0

    def add(self, choice: _Choice) -> None:
        """Append the states of a choice. Raises ValueError if the pattern is too large."""
        first, ends = len(self.states), []
        several = len(choice.branches) > 1
        if several:
            self._append(_Split(()))
        starts = []
        for branch in choice.branches:
            starts.append(len(self.states))
            for item in branch:
                self._repeat(item)
            if several:
                ends.append(self._append(_Split(())))
        if several:
            self.states[first] = _Split(tuple(starts))
            for end in ends:
                self.states[end] = _Split((len(self.states),))

    def _repeat(self, item: _Item) -> None:
        for _ in range(item.least):
            self._once(item.part)
        if item.most == _ENDLESS:
            start = self._append(_Split(()))
            self._once(item.part)
            self._append(_Split((start,)))
            self.states[start] = _Split((start + 1, len(self.states)))
            return
        skips = []
        for _ in range(item.most - item.least):
            skips.append(self._append(_Split(())))
            self._once(item.part)
        for skip in skips:
            self.states[skip] = _Split((skip + 1, len(self.states)))

    def _once(self, part: _Characters | _Choice) -> None:
        self._work += 1
        if self._work > MOST_STATES:
            raise ValueError(f"a pattern has at most {MOST_STATES} parts, its repetitions written out")
        if isinstance(part, _Choice):
            self.add(part)
        else:
            self._append(part)

    def _append(self, state: _Characters | _Split) -> int:
        self.states.append(state)
        return len(self.states) - 1

    def reading(self, start: int) -> tuple[int, ...]:
        """Return the states that read a character, or are the end, and that the state `start` reaches without
        reading.
        """
        found: dict[int, None] = {}
        waiting = [start]
        seen = {start}
        while waiting:
            number = waiting.pop()
            state = self.states[number]
            if isinstance(state, _Split):
                waiting += [one for one in state.to if one not in seen]
                seen.update(state.to)
            else:
                found[number] = None
        return tuple(found)


class _Parser:
    """Reads the text of a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open = 0

    def whole(self) -> _Choice:
        choice = self._choice()
        if self._at < len(self._text):
            raise ValueError("a pattern has a closing parenthesis that no other opens")
        return choice

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, what: str) -> str:
        """Take one character. Raises ValueError if the text ends: `what` is unfinished."""
        found = self._peek()
        if not found:
            raise ValueError(f"a pattern ends within {what}")
        self._at += 1
        return found

    def _choice(self) -> _Choice:
        branches: list[tuple[_Item, ...]] = []
        items: list[_Item] = []
        while (one := self._peek()) and one != ")":
            if one == "|":
                self._at += 1
                branches.append(tuple(items))
                items = []
            else:
                items.append(self._item())
        return _Choice((*branches, tuple(items)))

    def _item(self) -> _Item:
        part = self._part()
        least, most = self._counts()
        if (self._peek() or " ") in "?*+{":
            raise ValueError("a pattern repeats a repetition: put parentheses around the inner one")
        return _Item(part, least, most)

    def _part(self) -> _Characters | _Choice:
        one = self._take("a part")
        if one == "(":
            return self._group()
        if one == "[":
            return self._set()
        if one == "\\":
            return self._escaped()
        if one == ".":
            return _Characters(negated=True)
        if one in "?*+{":
            raise ValueError(f"a pattern repeats nothing: write \\{one} for the character itself")
        if one in "^$":
            raise ValueError(f"a pattern always means the whole value: leave out {one}, or write \\{one}")
        return _Characters(frozenset(one))

    def _group(self) -> _Choice:
        self._open += 1
        if self._open > _MOST_GROUPS:
            raise ValueError(f"a pattern has at most {_MOST_GROUPS} groups within each other")
        if self._peek() == "?":
            raise ValueError("a pattern has only plain groups: no (?")
        choice = self._choice()
        self._take("a group")
        self._open -= 1
        return choice

    def _escaped(self) -> _Characters:
        one = self._take("an escape")
        if one.lower() in _CLASSES:
            return _Characters(_CLASSES[one.lower()], negated=one.isupper())
        if one.isalnum():
            raise ValueError("a pattern has only the escapes \\d, \\w, \\s, \\D, \\W, \\S and those of signs")
        return _Characters(frozenset(one))

    def _set(self) -> _Characters:
        negated = self._peek() == "^"
        self._at += negated
        singles: set[str] = set()
        ranges: list[tuple[str, str]] = []
        while (one := self._take("a set")) != "]" or not (singles or ranges):
            found = self._escaped() if one == "\\" else _Characters(frozenset(one))
            if found.negated:
                raise ValueError("a set in a pattern has no \\D, \\W or \\S")
            following = self._text[self._at : self._at + 2]
            if len(found.singles) == 1 and following[:1] == "-" and following != "-]":
                self._at += 1
                ranges.append(self._range(min(found.singles)))
            else:
                singles |= found.singles
        return _Characters(frozenset(singles), tuple(ranges), negated)

    def _range(self, low: str) -> tuple[str, str]:
        one = self._take("a set")
        high = self._escaped().singles if one == "\\" else frozenset(one)
        if len(high) != 1 or min(high) < low:
            raise ValueError("a range in a pattern goes from a lower character to a higher one")
        return low, min(high)

    def _counts(self) -> tuple[int, int]:
        """Take the repetitions after a part: the smallest and the largest number."""
        one = self._peek()
        if one and one in "?*+":
            self._at += 1
            return {"?": (0, 1), "*": (0, _ENDLESS), "+": (1, _ENDLESS)}[one]
        if one != "{":
            return 1, 1
        found = _COUNTS.match(self._text, self._at)
        if found is None or (found[3] and not found[2]):
            raise ValueError(
                "a pattern's repetition is {2}, {2,} or {2,5}, up to 999; write \\{ for the character itself"
            )
        self._at = found.end()
        least = int(found[1])
        most = least if not found[2] else int(found[3]) if found[3] else _ENDLESS
        if most < least:
            raise ValueError("a pattern's repetition goes from a lower number to a higher one")
        return least, most
