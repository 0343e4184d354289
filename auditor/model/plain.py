"""Turn dataclasses into plain JSON values, and back by the types that they declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
Decode = Callable[[Any], Any]

DECODE: Final = "decode"
"""Metadata of a dataclass field whose value is not decoded by its declared type, but by this function."""
_WORDS: Final = {str: "text", int: "whole number", float: "number", bool: "true or false", NoneType: "null"}


def plain(value: Any) -> Any:
    """Dicts, lists, text, numbers, booleans and None; a dataclass becomes a dict in the order of its fields."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def typed(kind: Callable[..., T], value: object) -> T:
    """The `kind` that plain() made `value` of. Members that `kind` does not declare are ignored.

    kind: a dataclass of text, numbers, booleans, enums, dataclasses, `tuple[X, ...]`, `Mapping[str, X]` and `X | None`.
    Raises ValueError, which names the member, for a value of another type, and for a missing one without a default.
    """
    decoded: T = _decoder(kind)(value)
    return decoded


@cache
def _decoder(kind: Any) -> Decode:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _WORDS:
        return _scalar(kind)
    if origin is UnionType:
        (inner,) = (item for item in arguments if item is not NoneType)
        decode = _decoder(inner)
        return lambda value: None if value is None else decode(value)
    if origin is tuple:
        return _list(_decoder(arguments[0]))
    if origin is Mapping:
        return _mapping(_decoder(arguments[1]))
    return _dataclass(kind) if is_dataclass(kind) else kind  # an enum raises ValueError itself


def _scalar(kind: Any) -> Decode:
    allowed = (int, float) if kind is float else (kind,)

    def decode(value: Any) -> Any:
        if type(value) not in allowed:
            raise ValueError(f"it is no {_WORDS[kind]}")
        return value

    return decode


def _list(item: Decode) -> Decode:
    def decode(value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError("it is no list")
        return tuple(map(item, value))

    return decode


def _mapping(item: Decode) -> Decode:
    def decode(value: Any) -> Any:
        return {name: _member(name, item, one) for name, one in _object(value).items()}

    return decode


def _dataclass(kind: Any) -> Decode:
    hints = get_type_hints(kind)
    members = [
        (
            field.name,
            field.metadata.get(DECODE) or _decoder(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(kind)
        if field.init
    ]

    def decode(value: Any) -> Any:
        given, values = _object(value), {}
        for name, item, needed in members:
            if name in given:
                values[name] = _member(name, item, given[name])
            elif needed:
                raise ValueError(f"{name} is missing")
        return kind(**values)

    return decode


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _member(name: str, decode: Decode, value: Any) -> Any:
    try:
        return decode(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
