"""Patterns of Resource with one policy variable, such as home/${aws:username}/*: find the variable's values that reach
an object.

For one object, such a pattern is a condition on the variable's key: the key must have one of these values.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from auditor.model.wildcard import Variable, Wildcard


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
        start, parts = Wildcard.of(pattern, variables=True).divided
        match parts:
            case (Variable(key, default, False), *rest) if pattern.count("${") == 1 and not re.search("[*?$]", key):
                return cls(key, start, Wildcard(tuple(rest)), default)
        return None

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
