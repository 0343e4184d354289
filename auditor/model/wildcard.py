"""Patterns with wildcards, and with the policy variables of bucket policies: `*` is any text, `?` any one character,
`${key}` and `${key, 'default'}` a policy variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec import Struct


class Wild(Enum):
    """A wildcard in a pattern."""

    ANY = "?"
    """Any one character."""
    PART = "?:"
    """Any one character but a colon."""
    DIGIT = "#"
    """One of the ten ASCII digits."""
    STAR = "*"
    """Any text."""
    STAR_PART = "*:"
    """Any text without a colon."""


class Variable(NamedTuple):
    """A policy variable. key: the condition key in lower case. default: its text if the key is absent, or None."""

    key: str
    default: str | None = None
    malformed: bool = False


Part = str | Wild | Variable
"""A part of a pattern: a literal text, a wildcard or a policy variable."""

_TOKEN: Final = re.compile(r"\$\{[^}]*\}?|[*?]|[^$*?]+|\$")
_TOKEN_2008: Final = re.compile(r"[*?]|[^*?]+")
_VARIABLE: Final = re.compile(r"\$\{\s*[^\s,'{}]+\s*(?:,\s*'([^'}]*)'\s*)?\}")
_WILD: Final = {"*": Wild.STAR, "?": Wild.ANY}
_ESCAPED: Final[dict[str, str | Wild]] = {**_WILD, "${*}": "*", "${?}": "?", "${$}": "$"}
_ACCOUNTS: Final = (Variable("aws:principalaccount"), Variable("aws:sourceaccount"))
"""Variables of 12 characters: an account's number has 12 digits."""


def split(text: str, *, variables: bool) -> tuple[Part, ...]:
    """Split a pattern into its parts. variables: True if `${key}` is a policy variable, and `${*}`, `${?}` and `${$}`
    are the characters.
    """
    if not variables:
        return tuple(_WILD.get(token, token) for token in _TOKEN_2008.findall(text))
    return tuple(
        _variable(token) if token.startswith("${") and token not in _ESCAPED else _ESCAPED.get(token, token)
        for token in _TOKEN.findall(text)
    )


def _variable(text: str) -> Variable:
    match = _VARIABLE.fullmatch(text)
    key = text[2:].rstrip("}").partition(",")[0].strip().lower()
    return Variable(key, malformed=True) if match is None else Variable(key, match[1])


def variables_of(parts: Iterable[Part]) -> frozenset[str]:
    """Return the condition keys of the policy variables, in lower case."""
    return frozenset(part.key for part in parts if isinstance(part, Variable))


class Wildcard(Struct, frozen=True, dict=True):
    """A pattern that has to match a whole text; case counts. sure: False if the pattern has a policy variable, so that
    a match is only possible, not certain.
    """

    parts: tuple[Part, ...]
    sure: bool = True

    @classmethod
    @lru_cache(4096)
    def of(cls, pattern: str, *, variables: bool = False) -> Wildcard:
        """Parse a pattern, as split() does. A policy variable may stand for any text."""
        parts = split(pattern, variables=variables)
        return cls(parts, sure=not variables_of(parts))

    def matches(self, text: str) -> bool:
        return self._expression.fullmatch(text) is not None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        """Python's expression for the pattern. A piece between two `*` is matched at its first possible position, and
        never at a later one, which could not help the pieces that follow: so there is no backtracking.
        """
        pieces = [""]
        for part in self.parts:
            if isinstance(part, str):
                pieces[-1] += re.escape(part)
            elif part is Wild.ANY or part in _ACCOUNTS:
                pieces[-1] += "." if part is Wild.ANY else ".{12}"
            else:
                pieces.append("")
        first, *rest = pieces
        inner = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
        return re.compile(f"{first}{inner}.*{rest[-1]}" if rest else first, re.DOTALL)

    def may_match_after(self, start: str) -> bool:
        """True if the pattern can match a text that consists of `start` and at least one more character."""
        head, rest = self.divided
        if len(head) > len(start) or not rest:
            return head.startswith(start) and head != start
        return start.startswith(head)

    def matches_all_after(self, start: str) -> bool:
        """True if the pattern matches every text that consists of `start` and at least one more character. Such a
        pattern is `start`, or a beginning of it, followed by `*`.
        """
        head, rest = self.divided
        return start.startswith(head) and bool(rest) and all(part is Wild.STAR for part in rest)

    @property
    def divided(self) -> tuple[str, tuple[Part, ...]]:
        """The literal text before the first wildcard or policy variable, and the parts from there on."""
        literal = list(takewhile(lambda part: isinstance(part, str), self.parts))
        return "".join(map(str, literal)), self.parts[len(literal) :]


def matches_arn(pattern: str, arn: str) -> bool:
    """True if each part of an ARN matches the same part of a pattern: no wildcard stands for a colon between parts."""
    wanted, parts = pattern.split(":", 5), arn.split(":", 5)
    return len(wanted) == len(parts) and all(
        Wildcard.of(one).matches(part) for one, part in zip(wanted, parts, strict=True)
    )
