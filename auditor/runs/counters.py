"""The base of tallies: counts that are copied, saved as JSON and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self


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
        """Raises ValueError when to_dict did not write `saved`."""
        counters = cls()
        if set(saved) | cls.LATER != set(cls.__slots__):
            raise ValueError("a tally with other fields")
        for name, value in saved.items():
            start = getattr(counters, name)
            if isinstance(start, int):
                setattr(counters, name, _count(value))
            elif isinstance(value, dict):
                start.update({str(key): _counts(count) for key, count in value.items()})
            else:
                raise ValueError(f"a tally whose {name} is no object")
        return counters


def _counts(value: object) -> int | tuple[int, ...]:
    return tuple(_count(number) for number in value) if isinstance(value, list) else _count(value)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"not a count: {value!r}")
    return value
