"""The base class of tallies: counts that can be copied, saved as JSON and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import Struct

from auditor.model.json_text import JsonError, as_object, items, member, size


class Counters(Struct):
    """A set of counts that can be copied, saved as JSON and restored.

    Each of its fields is a count, a dict of counts, or a dict of pairs of counts.
    PAIRS: names of the fields that are dicts of pairs.
    """

    PAIRS: ClassVar[frozenset[str]] = frozenset()

    def copy(self) -> Self:
        """Return a copy of the counts, which further counting does not change."""
        values = [getattr(self, name) for name in self.__struct_fields__]
        return type(self)(*[value if type(value) is int else value.copy() for value in values])

    def to_dict(self) -> dict[str, Any]:
        twin = self.copy()
        return {name: getattr(twin, name) for name in self.__struct_fields__}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Restore the counts from a dict that to_dict() made. Raises JsonError for any other dict."""
        counters = cls()
        if set(saved) != set(cls.__struct_fields__):
            raise JsonError("has other fields", "the tally")
        for name in saved:
            start = getattr(counters, name)
            if isinstance(start, int):
                setattr(counters, name, member(saved, name, _count))
            else:
                start.update(member(saved, name, _pairs if name in cls.PAIRS else _counts))
        return counters


def _counts(value: Any) -> dict[str, int]:
    return {name: _count(number) for name, number in as_object(value).items()}


def _pairs(value: Any) -> dict[str, tuple[int, ...]]:
    found = {name: items(pair, _count) for name, pair in as_object(value).items()}
    if any(len(pair) != 2 for pair in found.values()):
        raise JsonError("is not made of pairs")
    return found


def _count(value: Any) -> int:
    return size(value, largest=2**63)
