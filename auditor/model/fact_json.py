"""Write facts of the bucket as JSON, and read them back: a value, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from msgspec import Struct, StructMeta
from msgspec.structs import fields

from auditor.model.json_text import JsonError, as_object, items, member, typed
from auditor.model.object import Skipped, Unread

T = TypeVar("T")


def fact_to_json(value: Any) -> Any:
    """Return a fact, or a Struct of facts, as a JSON value. A fact that is missing becomes {"unread": error} or
    {"skipped": reason}. A mapping becomes a list of pairs, so that no name in it can look like a missing fact.
    """
    if isinstance(value, Unread):
        return {"unread": {"action": value.action, "code": value.code}}
    if isinstance(value, Skipped):
        return {"skipped": value.reason}
    if isinstance(value, Struct):
        return {name: fact_to_json(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return [[key, fact_to_json(item)] for key, item in value.items()]
    if isinstance(value, tuple):
        return [fact_to_json(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def fact_from_json(kind: type[T], value: Any) -> T:
    """Read a Struct of facts that fact_to_json() wrote. A `Mapping[str, Any]` is read as it is. Raises JsonError for a
    wrong value, and for other members than those of the Struct.
    """
    found: T = _fact(kind, value)
    return found


def _fact(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(arguments, value)
    if origin is tuple:
        return items(value, partial(_fact, arguments[0]))
    if origin is Mapping and arguments[1] is not Any:
        return {name: _fact(arguments[1], item) for name, item in typed(tuple[tuple[str, Any], ...], value)}
    if not isinstance(kind, StructMeta):
        return typed(kind, value)
    types = _types(kind)
    if as_object(value).keys() != types.keys():
        raise JsonError("has other members")
    return kind(**{name: member(value, name, partial(_fact, one)) for name, one in types.items()})


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    names = set(value) if isinstance(value, dict) else set()
    if Unread in kinds and names == {"unread"}:
        return member(value, "unread", partial(typed, Unread))
    if Skipped in kinds and names == {"skipped"}:
        return Skipped(member(value, "skipped", partial(typed, str)))
    if value is None and NoneType in kinds:
        return None
    kind = next((one for one in kinds if one not in (Unread, Skipped, NoneType)), None)
    if kind is None:
        raise JsonError("is not a reason why the fact is missing")
    return _fact(kind, value)


@cache
def _types(kind: Any) -> dict[str, Any]:
    return {one.name: one.type for one in fields(kind)}
