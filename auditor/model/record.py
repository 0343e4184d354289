"""Immutable records that are cheap to construct: an audit makes several for each object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, kw_only: bool = False, hashed: bool = True) -> Callable[[type[T]], type[T]]:
    """A slotted dataclass with a hash, frozen for the type checker only.

    A class that is frozen at run time too sets each field through object.__setattr__ (dataclasses, "Frozen instances"),
    which takes several times as long. hashed: False for a class with its own hash.
    """

    def wrap(cls: type[T]) -> type[T]:
        return dataclass(slots=True, unsafe_hash=hashed, kw_only=kw_only)(cls)

    return wrap
