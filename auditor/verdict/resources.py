"""Find the statements of a policy whose Resource covers an object's key. Most policies have the same statements for
every object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, Self

from msgspec.structs import replace

from auditor.model.wildcard import Variable, Wildcard

_EVERY_OBJECT: Final = Wildcard.of("*")


class FolderPattern(NamedTuple):
    """A pattern of Resource with one policy variable, such as home/${aws:username}/*. For one object, it is a condition
    on the variable's key: the key must have one of the values that reach the object.

    key: the variable's condition key in lower case. start: the literal text before the variable. rest: the pattern
    after the variable. default: the text in place of a variable without a value; None if the pattern names none.
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


class FolderValues(NamedTuple):
    """The values of a policy variable with which a statement covers an object's key. place: the statement's index. key:
    the variable's condition key. negated: True for NotResource: with these values the statement does not cover the
    object's key. default: True if the variable's default has the same effect as these values.
    """

    place: int
    key: str
    values: tuple[str, ...]
    negated: bool
    default: bool = False


class KeyClass(NamedTuple):
    """The class of an object's key: the statements that cover it. A set of statements is an int, whose bit i stands for
    the statement with index i.

    surely: the statements that cover the key. perhaps: the statements that may cover it. Such a statement covers the
    key for some requesters only, because of a policy variable; or its Resource is not an ARN of an object that S3
    knows.
    """

    surely: int
    perhaps: int
    values: tuple[FolderValues, ...] = ()
    """For statements of `perhaps`: the values of a policy variable that decide if the statement covers the object's
    key."""
    scopes: tuple[str, ...] = ()
    """The scopes of S3 Access Grants that cover the key."""


class _KeyedStatement(NamedTuple):
    """A statement that covers some object keys only. covers: the patterns of Resource; if negated, those of
    NotResource. place: the statement's index.
    """

    covers: tuple[Wildcard, ...]
    negated: bool
    place: int
    folders: tuple[FolderPattern | None, ...]
    """For each pattern in `covers`: its FolderPattern, if it has one policy variable; else None."""

    def covers_key(self, path: str) -> bool | None:
        """True if the statement covers the object's key, False if not, None if it may. path: BUCKET/KEY."""
        doubtful = False
        for cover in self.covers:
            if cover.matches(path):
                if cover.sure:
                    return not self.negated
                doubtful = True
        return None if doubtful else self.negated

    def values(self, path: str) -> FolderValues | None:
        """Return the values of a policy variable with which the statement covers the path. Return None if the
        statement's patterns have several variables.
        """
        keys: set[str] = set()
        values: list[str] = []
        default = False
        for cover, folder in zip(self.covers, self.folders, strict=True):
            if not cover.matches(path):
                continue
            if folder is None:
                return None
            keys.add(folder.key)
            values += folder.values(path)
            default = default or folder.has_default(path)
        if len(keys) != 1:
            return None
        return FolderValues(self.place, keys.pop(), tuple(sorted(set(values))), self.negated, default)


class KeyCoverage:
    """Tells which statements of a policy cover an object's key. It prepares their resources once, for many keys.

    A resource of a statement is a pair (negated, patterns). start: the text before the object's key in a resource:
    BUCKET/, or the ARN of an access point and /object/. whole_arns: True to compare whole ARNs.
    """

    def __init__(
        self,
        resources: Sequence[tuple[bool, Sequence[str]]],
        start: str,
        *,
        variables: bool,
        whole_arns: bool = False,
    ) -> None:
        self._start = start
        self._always = 0
        self._keyed: list[_KeyedStatement] = []
        for place, (negated, texts) in enumerate(resources):
            cover = partial(Wildcard.of, variables=variables) if whole_arns else partial(cover_of, variables=variables)
            covers = [(one, text) for text in texts if (one := cover(text)).may_match_after(start)]
            folders = tuple(
                FolderPattern.of(text.split(":", 5)[-1]) if variables and not whole_arns else None for _, text in covers
            )
            self._add(_KeyedStatement(tuple(one for one, _ in covers), negated, place, folders))
        self._plain = KeyClass(self._always, 0)
        self.representatives: Callable[[str, Sequence[Sequence[str]]], Sequence[Iterable[str]]] = lambda _, groups: (
            groups
        )
        """Takes a condition key and groups of its values; returns the representatives of each (Representatives.of)."""

    def class_of(self, key: str) -> KeyClass:
        """Return the statements that cover the key."""
        if not self._keyed:
            return self._plain
        path = self._start + key
        surely, perhaps = self._plain[:2]
        values: list[FolderValues] = []
        for keyed in self._keyed:
            covers = keyed.covers_key(path)
            if covers:
                surely |= 1 << keyed.place
            elif covers is None:
                perhaps |= 1 << keyed.place
                found = keyed.values(path)
                if found is not None:
                    values.append(found)
        return KeyClass(surely, perhaps, self._alike(values))

    def _alike(self, found: Sequence[FolderValues]) -> tuple[FolderValues, ...]:
        """Return the values of each statement by their representatives. Values with which different statements cover
        the object have different representatives.
        """
        groups: dict[str, dict[tuple[int, ...], list[str]]] = {}
        for key, value in dict.fromkeys((one.key, value) for one in found for value in one.values):
            places = tuple(i for i, one in enumerate(found) if one.key == key and value in one.values)
            groups.setdefault(key, {}).setdefault(places, []).append(value)
        chosen: list[set[str]] = [set() for _ in found]
        for key, shared in groups.items():
            for places, texts in zip(shared, self.representatives(key, [*shared.values()]), strict=True):
                for i in places:
                    chosen[i].update(texts)
        return tuple(one._replace(values=tuple(sorted(texts))) for one, texts in zip(found, chosen, strict=True))

    def _add(self, keyed: _KeyedStatement) -> None:
        surely = any(cover.sure and cover.matches_all_after(self._start) for cover in keyed.covers)
        if keyed.covers and not surely:
            self._keyed.append(keyed)
        elif surely != keyed.negated:  # the key does not matter: the statement covers every object, or none
            self._always |= 1 << keyed.place


def cover_of(text: str, variables: bool) -> Wildcard:
    """Return the pattern that a Resource sets for "BUCKET/KEY". text: the Resource, "arn:PARTITION:s3:::BUCKET/KEY" or
    "*", whose `*` matches slashes too. variables: True if `${...}` in the text is a policy variable.

    The ARN of another service gives a pattern that matches nothing. Some ARNs give a pattern that is not sure, so that
    its matches are only possible: a malformed ARN, and one with a variable, a region, an account or a wildcard for the
    service.
    """
    if text and not text.strip("*"):
        return _EVERY_OBJECT
    parts = text.split(":", 5)
    head = parts[:5]
    if len(parts) < 6 or parts[0] != "arn" or "$" in "".join(head):
        return replace(_EVERY_OBJECT, sure=False)
    wildcard = Wildcard.of(parts[5], variables=variables)
    # An object's ARN has no region and no account. Ceph writes a tenant there, which the facts do not name.
    plain = parts[2] == "s3" and not "".join(parts[3:5]).strip("*")
    if not Wildcard.of(parts[2]).matches("s3"):
        return Wildcard.of("")
    return replace(wildcard, sure=wildcard.sure and plain)
