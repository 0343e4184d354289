"""A bucket's objects that are computed from their numbers at every request; none of them is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:  # the benchmarks' clients import the keys alone
    from tests.support.servers.world import StubObject


@dataclass(frozen=True, slots=True)
class NumberedKeys(Sequence[str]):
    """Keys in the order of their numbers. name: the key of a number. digits: the place of the number in a key."""

    total: int
    name: Callable[[int], str]
    digits: slice

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self.name(number) for number in range(*at.indices(self.total))]
        if not 0 <= at < self.total:
            raise IndexError(at)
        return self.name(at)

    def __len__(self) -> int:
        return self.total

    def number(self, key: str) -> int | None:
        """The number of a key; None for any other key."""
        digits = key[self.digits]
        if not (digits.isascii() and digits.isdecimal()):
            return None
        number = int(digits)
        return number if number < self.total and self.name(number) == key else None


class ComputedObjects:
    """The objects of these keys. make: an object of its number and its key."""

    def __init__(self, keys: NumberedKeys, make: Callable[[int, str], StubObject]) -> None:
        self.keys = keys
        self._make = make

    def versions(self, key: str) -> Sequence[StubObject]:
        number = self.keys.number(key)
        return () if number is None else (self._make(number, key),)

    def remove(self, key: str, version_id: str | None = None) -> None:
        raise TypeError("the objects of this bucket are computed; none can be removed")
