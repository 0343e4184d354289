"""The types of SQL columns, made from the types of the line's fields, as DuckDB and as Athena write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import EnumType
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from auditor.model.object import Skipped


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type without parts. duckdb, athena: its names."""

    duckdb: str
    athena: str


@dataclass(frozen=True, slots=True)
class ListType:
    """A list of values of one type."""

    item: ColumnType

    @property
    def duckdb(self) -> str:
        return f"{self.item.duckdb}[]"

    @property
    def athena(self) -> str:
        return f"array<{self.item.athena}>"


@dataclass(frozen=True, slots=True)
class StructType:
    """A value with named members, each null where it is absent."""

    members: Mapping[str, ColumnType]

    @property
    def duckdb(self) -> str:
        members = ", ".join(f'"{name}" {kind.duckdb}' for name, kind in self.members.items())
        return f"STRUCT({members})"

    @property
    def athena(self) -> str:
        members = ",".join(f"{name}:{kind.athena}" for name, kind in self.members.items())
        return f"struct<{members}>"


ColumnType = SqlType | ListType | StructType

TEXT: Final = SqlType("VARCHAR", "string")
WHOLE: Final = SqlType("BIGINT", "bigint")
TRUTH: Final = SqlType("BOOLEAN", "boolean")
JSON: Final = SqlType("JSON", "string")
"""JSON as text: a value of several forms, such as user metadata, which has names only or names with values."""

_SCALARS: Final[Mapping[Any, SqlType]] = {str: TEXT, int: WHOLE, bool: TRUTH}


def type_of(kind: Any) -> ColumnType:
    """Return the column type of a field's type. A union of a fact, Unread and Skipped has the members of all three."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    arguments = [item for item in get_args(kind) if item is not NoneType]
    if get_origin(kind) in (Union, UnionType):
        return type_of(arguments[0]) if len(arguments) == 1 else _fact(arguments)
    if get_origin(kind) is tuple:
        return ListType(type_of(arguments[0]))
    if isinstance(kind, EnumType):
        return TEXT
    if is_dataclass(kind):
        return StructType(members_of(kind))
    return JSON if get_origin(kind) is Mapping else _SCALARS[kind]


def members_of(kind: Any) -> dict[str, ColumnType]:
    """Return the column type of each field of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: type_of(hints[name]) for name in kind.__match_args__}


def _fact(kinds: list[Any]) -> StructType:
    value, *missing = kinds
    members = members_of(value)
    for kind in missing:
        members[kind.__name__.lower()] = TEXT if kind is Skipped else StructType(members_of(kind))
    return StructType(members)
