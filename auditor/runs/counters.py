"""The base class of tallies: counts that can be copied."""

from __future__ import annotations

from typing import Self

from msgspec import Struct


class Counters(Struct):
    """A set of counts.

    Each of its fields is a count, a dict of counts, or a dict of pairs of counts.
    """

    def copy(self) -> Self:
        """Return a copy of the counts, which further counting does not change."""
        values = [getattr(self, name) for name in self.__struct_fields__]
        return type(self)(*[value if type(value) is int else value.copy() for value in values])
