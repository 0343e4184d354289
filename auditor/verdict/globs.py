"""Sets of texts, each described by patterns, and the combinations of sets to which one text can belong."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec import Struct

from auditor.model.wildcard import Wild
from auditor.verdict.steps import KeySteps

DIGITS: Final = "0123456789"
_SPARE: Final = "xyzwvutsrqponmlkjihgfedcba-_. XYZWVUTSRQPONMLKJIHGFEDCBA/@+=,!~"


_STARS: Final = {Wild.STAR: Wild.ANY, Wild.STAR_PART: Wild.PART}


class Glob(Struct, frozen=True):
    """A pattern that has to match a whole text.

    A position in the pattern is the number of tokens before it. A set of positions is an int, whose bit i stands for
    position i.
    """

    tokens: tuple[str | Wild, ...]
    """Each token matches one character: a Wild one of its kind, a str any character that it contains."""
    loops: tuple[Wild | None, ...]
    """The star at each position: Wild.ANY or Wild.PART, the characters that it matches; None without a star."""
    _masks: Mapping[str, int]
    _any: int
    _part: int
    _digit: int
    _stay: int
    _stay_part: int
    _ahead: int
    """The positions with a star that matches everything that the earlier positions match."""
    begin: str
    """The literal text with which every match begins; "" if case does not count."""

    def __hash__(self) -> int:
        return hash((self.tokens, self.loops))  # the other fields follow from these two

    @classmethod
    def of(cls, parts: Sequence[str | Wild], *, ignore_case: bool = False) -> Glob:
        """Make the pattern of literal texts and wildcards. ignore_case: True if the literal texts match in any case."""
        tokens: list[str | Wild] = []
        loops: list[Wild | None] = [None]
        for part in parts:
            if isinstance(part, str):
                tokens += [_cases(char) if ignore_case else char for char in part]
                loops += [None] * len(part)
            elif part in _STARS:
                loops[-1] = Wild.ANY if Wild.ANY in (loops[-1], _STARS[part]) else Wild.PART
            else:
                tokens.append(part)
                loops.append(None)
        masks: dict[str, int] = {}
        for i, token in enumerate(tokens):
            if isinstance(token, str):
                for char in token:
                    masks[char] = masks.get(char, 0) | 1 << i
        wild = {kind: sum(1 << i for i, token in enumerate(tokens) if token is kind) for kind in Wild}
        stay = {kind: sum(1 << i for i, loop in enumerate(loops) if loop is kind) for kind in Wild}
        # Before a star without colons no wildcard may take one: then all positions that are reached together have
        # passed equally many colons.
        takes = (i for i in range(len(loops)) if loops[i] is Wild.ANY or (i and tokens[i - 1] is Wild.ANY))
        colons = next(takes, len(loops))
        return cls(
            tuple(tokens),
            tuple(loops),
            masks,
            wild[Wild.ANY],
            wild[Wild.PART],
            wild[Wild.DIGIT],
            stay[Wild.ANY],
            stay[Wild.PART],
            stay[Wild.ANY] | stay[Wild.PART] & ((1 << colons) - 1),
            "".join(takewhile(lambda cases: len(cases) == 1, _literals(tokens, loops))),
        )

    def step(self, positions: int, char: str) -> int:
        """Return the positions that the pattern can have after one more character of the text."""
        taken, stay = self._masks.get(char, 0) | self._any, self._stay
        if char != ":":
            taken |= self._part
            stay |= self._stay_part
        if self._digit and char in DIGITS:
            taken |= self._digit
        return self.prune((positions & taken) << 1 | positions & stay)

    def prune(self, positions: int) -> int:
        """Drop positions that are not needed: all before the last star that matches everything that they match."""
        star = (positions & self._ahead).bit_length()
        return positions >> star - 1 << star - 1 if star else positions

    def accepts(self, positions: int) -> bool:
        return bool(positions >> len(self.tokens) & 1)

    def accepts_all(self, positions: int) -> bool:
        """True if the pattern, at these positions, matches whatever text follows."""
        return self.accepts(positions) and self.loops[-1] is Wild.ANY

    def after(self, text: str) -> int:
        """Return the positions that the pattern can have after it has matched the beginning of a text."""
        begun = len(self.begin)
        if not text.startswith(self.begin):
            return 1 << len(text) if self.begin.startswith(text) else 0
        positions = self.prune(1 << begun)
        for char in text[begun:] if begun else text:
            positions = self.step(positions, char)
            if not positions:
                break
        return positions

    def matches(self, text: str) -> bool:
        return self.accepts(self.after(text))

    @property
    def literal(self) -> str | None:
        """The only text that the pattern matches, in lower case if case does not count; None for several texts."""
        return None if any(self.loops) else self.head if len(self.head) == len(self.tokens) else None

    @property
    def head(self) -> str:
        """The literal text before the first wildcard, with which every match begins. It is in lower case if case does
        not count.
        """
        return "".join(token[0] for token in _literals(self.tokens, self.loops))

    def awaited(self, positions: int) -> Iterator[str | Wild]:
        """Yield the tokens and the stars at these positions. They decide which next characters match."""
        while positions:
            i = (positions & -positions).bit_length() - 1
            positions &= positions - 1
            if i < len(self.tokens):
                yield self.tokens[i]
            loop = self.loops[i]
            if loop is not None:
                yield loop


def _literals(tokens: Sequence[str | Wild], loops: Sequence[Wild | None]) -> Iterator[str]:
    """Yield the characters with which every match begins, each in all its cases."""
    for token, loop in zip(tokens, loops, strict=False):
        if loop is not None or isinstance(token, Wild):
            return
        yield token


def _cases(char: str) -> str:
    """Return the character in all its cases, the lower case first."""
    return "".join(dict.fromkeys(case for case in (char.lower(), char.upper(), char) if len(case) == 1)) or char


# ---- several sets at once

_State = tuple[tuple[tuple[int, int], ...] | None, ...]


class Sieve(NamedTuple):
    """A filter for texts. A text passes if a pattern of `only` matches it and no pattern of `never` does."""

    only: tuple[Glob, ...]
    never: tuple[Glob, ...] = ()

    def keeps(self, text: str) -> bool:
        return any(glob.matches(text) for glob in self.only) and not any(glob.matches(text) for glob in self.never)


def memberships(
    sets: Sequence[tuple[Glob, ...]], sieve: Sieve, steps: KeySteps | None = None
) -> dict[tuple[bool, ...], str]:
    """Find the combinations of sets to which one text can belong, among the texts that pass the sieve.

    The result has each possible combination (True or False for each set), with the shortest text that belongs to it. A
    text belongs to a set if one of the set's patterns matches the text. Raises TooComplexError if that takes too many
    steps.
    """
    steps = steps or KeySteps()
    literals = {glob.begin: None for globs in (sieve.never, *sets) for glob in globs if _is_literal(glob)}
    if not literals:
        return _memberships(sets, sieve, steps)
    # A text other than the literal ones belongs to no set by them. Each literal text is tried by itself.
    rest = [tuple(glob for glob in globs if not _is_literal(glob)) for globs in sets]
    never = {glob.begin for glob in sieve.never if _is_literal(glob)}
    kept = Sieve(sieve.only, tuple(glob for glob in sieve.never if not _is_literal(glob)))
    others = _memberships([globs for globs in rest if globs], kept, steps)
    if any(text in literals for text in others.values()):
        return _memberships(sets, sieve, steps)
    found: dict[tuple[bool, ...], str] = {}
    for inside, text in others.items():
        left = iter(inside)
        found[tuple(bool(globs) and next(left) for globs in rest)] = text
    by_text: dict[str, set[int]] = {}
    for place, globs in enumerate(sets):
        for glob in globs:
            if _is_literal(glob):
                by_text.setdefault(glob.begin, set()).add(place)
    for text in literals:
        steps.spend(4 + len(rest) // 4 + sum(map(len, (*rest, *kept))))
        if text not in never and kept.keeps(text):
            own = by_text.get(text, ())
            inside = tuple(i in own or any(glob.matches(text) for glob in globs) for i, globs in enumerate(rest))
            found.setdefault(inside, text)
    return found


def _is_literal(glob: Glob) -> bool:
    """True if the pattern matches one text only, which is not empty and whose case counts."""
    return bool(glob.begin) and len(glob.begin) == len(glob.tokens) and not glob.loops[-1]


def _memberships(sets: Sequence[tuple[Glob, ...]], sieve: Sieve, steps: KeySteps) -> dict[tuple[bool, ...], str]:
    """Find the combinations of sets, as memberships() does, by walking through the patterns character by character."""
    product = _Product((sieve.only, sieve.never, *sets), steps)
    found: dict[tuple[bool, ...], str] = {}
    begin = _common_begin([glob.begin for glob in sieve.only])
    first = product.start(begin)
    seen, waiting = {first}, deque([(first, begin)])
    while waiting:
        state, text = waiting.popleft()
        only, never, *inside = product.accepted(state)
        if only and not never:
            found.setdefault(tuple(inside), text)
            if len(found) == 1 << len(sets):
                break
        for char in product.alphabet(state):
            following = product.step(state, char)
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append((following, text + char))
                steps.spend(len(sets) + 4)
    return found


def _common_begin(texts: Sequence[str]) -> str:
    first, last = min(texts, default=""), max(texts, default="")
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


class _Product:
    """Runs all patterns of several sets over one text side by side.

    A state has an entry for each set: the positions of those of its patterns that can still match; or None, if the set
    contains every text that continues from here.
    """

    def __init__(self, sets: Sequence[tuple[Glob, ...]], steps: KeySteps) -> None:
        self._sets = sets
        self._steps = steps

    def start(self, text: str) -> _State:
        """Return the state after `text`, the common beginning of all texts that pass the sieve."""
        return tuple(
            self._settle(globs, ((i, glob.after(text)) for i, glob in enumerate(globs))) for globs in self._sets
        )

    def _settle(
        self, globs: tuple[Glob, ...], entries: Iterator[tuple[int, int]]
    ) -> tuple[tuple[int, int], ...] | None:
        kept = tuple(entry for entry in entries if entry[1])
        return None if any(globs[i].accepts_all(positions) for i, positions in kept) else kept

    def step(self, state: _State, char: str) -> _State | None:
        """Return the state after one more character; None if no text that begins like this can pass the sieve."""
        following = []
        for globs, entries in zip(self._sets, state, strict=True):
            if entries:
                self._steps.spend(len(entries))
                entries = self._settle(globs, ((i, globs[i].step(positions, char)) for i, positions in entries))
            following.append(entries)
            if len(following) == 2 and (following[0] == () or following[1] is None):
                return None
        return tuple(following)

    def accepted(self, state: _State) -> list[bool]:
        return [
            entries is None or any(globs[i].accepts(positions) for i, positions in entries)
            for globs, entries in zip(self._sets, state, strict=True)
        ]

    def alphabet(self, state: _State) -> list[str]:
        """Return the characters to try next: one of each kind that the patterns in this state distinguish."""
        named: set[str] = set()
        wild: set[Wild] = set()
        for globs, entries in zip(self._sets, state, strict=True):
            for i, positions in entries or ():
                for token in globs[i].awaited(positions):
                    if isinstance(token, str):
                        named.update(token)
                    else:
                        wild.add(token)
        if Wild.PART in wild:
            named.add(":")
        if Wild.DIGIT in wild:
            named.update([digit for digit in DIGITS if digit not in named][:1])
        return [*sorted(named), _spare(named)]


def _spare(named: set[str]) -> str:
    """Return a character that is neither named, nor a digit, nor a colon."""
    more = (chr(code) for code in range(0xE000, 0x10FFFF))
    return next(char for source in (_SPARE, more) for char in source if char not in named)
