"""Patterns of Resource with one policy variable, such as home/${aws:username}/*: find the variable's values that reach
an object.

For one object, such a pattern is a condition on the variable's key: the key must have one of these values.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

from auditor.verdict.wildcard import Wildcard

_VARIABLE: Final = re.compile(r"\$\{\s*([^\s,'{}*?$]+)\s*(?:,\s*'([^'}]*)'\s*)?\}")


class FolderPattern(NamedTuple):
    """A pattern of Resource with one policy variable. key: the variable's condition key in lower case. start: the
    literal text before the variable. rest: the pattern after the variable. default: the text in place of a variable
    without a value; None if the pattern names none.
    """

    key: str
    start: str
    rest: Wildcard
    default: str | None = None

    @classmethod
    def of(cls, pattern: str) -> Self | None:
        """Return the parsed pattern. Return None if it has no variable, several variables, or a wildcard before the
        variable.
        """
        found = list(_VARIABLE.finditer(pattern))
        if len(found) != 1 or pattern.count("${") != 1:
            return None
        start, rest = pattern[: found[0].start()], pattern[found[0].end() :]
        if re.search(r"[*?]", start):
            return None
        return cls(found[0][1].lower(), start, Wildcard.of(rest), found[0][2])

    def values(self, path: str) -> tuple[str, ...]:
        """Return the values of the variable with which the pattern matches the path."""
        if not path.startswith(self.start):
            return ()
        text = path[len(self.start) :]
        return tuple(text[:end] for end in range(1, len(text) + 1) if self.rest.matches(text[end:]))

    def has_default(self, path: str) -> bool:
        """True if the pattern matches the path without a value of the variable."""
        text = None if self.default is None else self.start + self.default
        return text is not None and path.startswith(text) and self.rest.matches(path[len(text) :])
