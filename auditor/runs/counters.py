"""The base of tallies: counts that are copied, saved as JSON and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from auditor.model.json_text import JsonError, as_object, items, member, size


class Counters:
    """A subclass is a slotted dataclass; each field is a count, or a dict of counts or of tuples of counts.

    LATER: fields that checkpoints of earlier versions do not have.
    """

    __slots__: tuple[str, ...] = ()
    LATER: ClassVar[frozenset[str]] = frozenset()

    def copy(self) -> Self:
        """The counts as they are now; later counting does not change the copy."""
        twin = type(self).__new__(type(self))  # no __init__: an audit copies its tally at each object
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(twin, name, value if type(value) is int else value.copy())
        return twin

    def to_dict(self) -> dict[str, Any]:
        twin = self.copy()
        return {name: getattr(twin, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Raises JsonError when to_dict did not write `saved`."""
        counters = cls()
        if set(saved) | cls.LATER != set(cls.__slots__):
            raise JsonError("has other fields", "the tally")
        for name in saved:
            start = getattr(counters, name)
            if isinstance(start, int):
                setattr(counters, name, member(saved, name, _count))
            else:
                start.update(member(saved, name, _counts))
        return counters


def _counts(value: Any) -> dict[str, int | tuple[int, ...]]:
    found = as_object(value).items()
    return {name: items(number, _count) if isinstance(number, list) else _count(number) for name, number in found}


def _count(value: Any) -> int:
    return size(value, largest=2**63)
