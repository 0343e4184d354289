"""Write facts of the bucket as JSON, and read them back: a value, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, EnumType
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, StructMeta

from auditor.model.json_text import JsonError, as_object, items, member, typed
from auditor.model.object import Skipped, Unread

T = TypeVar("T")
Reader = Callable[[Any], Any]


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
    """Read a Struct of facts that fact_to_json() wrote. Raises JsonError for a wrong value, and for other members
    than those of the Struct.
    """
    read: Reader = _reader(kind)  # type: ignore[arg-type]
    found: T = read(value)
    return found


@cache
def _reader(kind: Any) -> Reader:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is tuple:
        item = _reader(arguments[0])
        return lambda value: items(value, item)
    if origin is Mapping:
        item = _reader(arguments[1])
        return lambda value: dict(items(value, lambda pair: _pair(pair, item)))
    if isinstance(kind, StructMeta):
        return _struct(kind)
    return lambda value: _scalar(kind, value)


def _union(arguments: tuple[Any, ...]) -> Reader:
    present = [one for one in arguments if one not in (Unread, Skipped, NoneType)]
    read = _reader(present[0]) if present else _refuse

    def read_one(value: Any) -> Any:
        if value is None and NoneType in arguments:
            return None
        if Unread in arguments and isinstance(value, dict) and value.keys() == {"unread"}:
            return member(value, "unread", lambda found: typed(Unread, found))
        if Skipped in arguments and isinstance(value, dict) and value.keys() == {"skipped"}:
            return Skipped(member(value, "skipped", lambda found: _scalar(str, found)))
        return read(value)

    return read_one


def _refuse(value: Any) -> Any:
    raise JsonError("is not a reason why the fact is missing")


def _pair(pair: Any, read: Reader) -> tuple[str, Any]:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
        raise JsonError("is not a pair")
    return pair[0], read(pair[1])


def _scalar(kind: Any, value: Any) -> Any:
    if isinstance(kind, EnumType):
        try:
            return kind(value)
        except ValueError:
            raise JsonError("is not a known word") from None
    if type(value) is not kind:
        raise JsonError(f"is not of the type {kind.__name__}")
    return value


def _struct(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name in kind.__struct_fields__}

    def read(value: Any) -> Any:
        given = as_object(value)
        if given.keys() != readers.keys():
            raise JsonError("has other members")
        return kind(**{name: member(given, name, readers[name]) for name in given})

    return read
