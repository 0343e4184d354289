"""Match the wildcards of bucket policies: `*` is any text, `?` any one character, `${name}` a policy variable."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct

_TOKEN: Final = re.compile(r"\$\{[^}]*\}?|[*?]|[^$*?]+|\$")
_TOKEN_2008: Final = re.compile(r"[*?]|[^*?]+")
_ACCOUNT: Final = re.compile(r"\$\{\s*aws:(Principal|Source)Account\s*\}", re.IGNORECASE)
_LITERALS: Final = {"${*}": "*", "${?}": "?", "${$}": "$"}


class _Piece(NamedTuple):
    """A part of a pattern between two `*`. runs: the literal texts of the part. Between each two runs stands one
    `?`.
    """

    runs: tuple[str, ...]
    length: int

    def stands_at(self, text: str, index: int) -> bool:
        for run in self.runs:
            if not text.startswith(run, index):
                return False
            index += len(run) + 1
        return True

    def find(self, text: str, start: int, end: int) -> int:
        """Return the index of the first match within text[start:end]; -1 if there is none."""
        if len(self.runs) == 1:
            return text.find(self.runs[0], start, end)
        return next((i for i in range(start, end - self.length + 1) if self.stands_at(text, i)), -1)


class Wildcard(Struct, frozen=True):
    """A pattern that has to match a whole text; case counts. sure: False if the pattern has a policy variable, so that
    a match is only possible, not certain.

    pieces: the parts of the pattern between the `*`. Each piece is matched at its first possible position. A later
    position could not help the pieces that follow, so there is no backtracking.
    """

    pieces: tuple[_Piece, ...]
    sure: bool = True

    @classmethod
    def of(cls, pattern: str, *, variables: bool = False) -> Wildcard:
        """Parse a pattern. variables: True if `${name}` is a policy variable, which may stand for any text, and `${*}`,
        `${?}` and `${$}` are the characters.
        """
        pieces, sure = [[""]], True
        for part in (_TOKEN if variables else _TOKEN_2008).findall(pattern):
            variable = variables and part.startswith("${") and part not in _LITERALS
            sure = sure and not variable
            if variable and _ACCOUNT.fullmatch(part):
                pieces[-1] += [""] * 12  # an account's number has 12 digits
            elif variable or part == "*":
                pieces.append([""])
            elif part == "?":
                pieces[-1].append("")
            else:
                pieces[-1][-1] += _LITERALS.get(part, part) if variables else part
        return cls(tuple(_Piece(tuple(runs), sum(map(len, runs)) + len(runs) - 1) for runs in pieces), sure)

    def matches(self, text: str) -> bool:
        first, last = self.pieces[0], self.pieces[-1]
        if not first.stands_at(text, 0):
            return False
        if len(self.pieces) == 1:
            return len(text) == first.length
        start, end = first.length, len(text) - last.length
        if end < start or not last.stands_at(text, end):
            return False
        for piece in self.pieces[1:-1]:
            start = piece.find(text, start, end)
            if start < 0:
                return False
            start += piece.length
        return True

    def may_match_after(self, start: str) -> bool:
        """True if the pattern can match a text that consists of `start` and at least one more character."""
        head = self._head
        if len(head) > len(start) or self._literal:
            return head.startswith(start) and head != start
        return start.startswith(head)

    def matches_all_after(self, start: str) -> bool:
        """True if the pattern matches every text that consists of `start` and at least one more character. Such a
        pattern is `start`, or a beginning of it, followed by `*`.
        """
        rest = self.pieces[1:]
        return (
            len(self.pieces[0].runs) == 1
            and start.startswith(self._head)
            and bool(rest)
            and not any(piece.length for piece in rest)
        )

    @property
    def _head(self) -> str:
        return self.pieces[0].runs[0]

    @property
    def _literal(self) -> bool:
        return len(self.pieces) == 1 and len(self.pieces[0].runs) == 1


def variables_of(texts: Iterable[str]) -> frozenset[str]:
    """Return the names of the policy variables in the texts, in lower case and without defaults."""
    found = (part for text in texts for part in _TOKEN.findall(text) if part.startswith("${") and part not in _LITERALS)
    return frozenset(part[2:].rstrip("}").partition(",")[0].strip().lower() for part in found)


def matches_arn(pattern: str, arn: str) -> bool:
    """True if each part of an ARN matches the same part of a pattern: no wildcard stands for a colon between parts."""
    wanted, parts = pattern.split(":", 5), arn.split(":", 5)
    return len(wanted) == len(parts) and all(
        Wildcard.of(one).matches(part) for one, part in zip(wanted, parts, strict=True)
    )
