"""Dataclasses that are cheap to construct, because an audit makes several for each object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, kw_only: bool = False, hashed: bool = True) -> Callable[[type[T]], type[T]]:
    """Return a decorator that makes a class a slotted dataclass with a hash. Only the type checker treats the class as
    frozen.

    A dataclass that is frozen at run time sets each field through object.__setattr__, which takes several times as
    long. hashed: False for a class that defines __hash__ itself.
    """

    def wrap(cls: type[T]) -> type[T]:
        return dataclass(slots=True, unsafe_hash=hashed, kw_only=kw_only)(cls)

    return wrap
