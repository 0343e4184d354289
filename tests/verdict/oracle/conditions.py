"""Decide one condition of a policy for one concrete request, as the IAM guide's page on condition operators says."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

Values = tuple[str, ...] | None
"""The values of a condition key in a request; None if the request has no such key."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_ANY, _ONE = "\ue000", "\ue001"
"""Stand for the wildcards, so that a literal star from a variable is not one."""
ANY_TEXT = _ANY
"""Stands for any text, in place of a variable's value."""


@lru_cache(10_000)
def normal(key: str) -> str:
    """Return a condition key in its one spelling: only the tag key after the slash keeps its case."""
    head, slash, tag = key.partition("/")
    return head.lower() + slash + tag


def variables(text: str) -> tuple[str, ...]:
    """Return the keys of the policy variables in `text`."""
    names = (name.partition(",")[0].strip() for name in _VARIABLE.findall(text))
    return tuple(normal(name) for name in names if name not in ("*", "?", "$"))


def expand(text: str, request: Mapping[str, Values]) -> str | None:
    """Return `text` with its wildcards marked and its variables replaced; None if the request lacks a variable."""
    if "${" not in text:
        return _marked(text)
    pieces: list[str] = []
    end = 0
    for found in _VARIABLE.finditer(text):
        pieces.append(_marked(text[end : found.start()]))
        end = found.end()
        name, _, default = found[1].partition(",")
        if name in ("*", "?", "$"):
            pieces.append(name)
            continue
        values = request.get(normal(name.strip()))
        if values is not None and len(values) == 1:
            pieces.append(values[0])
        elif default:
            pieces.append(default.strip().strip("'"))
        else:
            return None
    return "".join([*pieces, _marked(text[end:])])


@lru_cache(10_000)
def _marked(text: str) -> str:
    return text.replace("*", _ANY).replace("?", _ONE)


def plain(text: str) -> str:
    """Return marked text with its wildcards as characters."""
    return text.replace(_ANY, "*").replace(_ONE, "?")


def marked(text: str) -> str:
    """Return text without variables with its wildcards marked."""
    return _marked(text)


@lru_cache(100_000)
def like(pattern: str, text: str) -> bool:
    """True if the whole text matches the marked pattern."""
    parts = (".*" if char == _ANY else "." if char == _ONE else re.escape(char) for char in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _arn_like(pattern: str, text: str) -> bool:
    wanted, given = pattern.split(":", 5), text.split(":", 5)
    if len(wanted) != 6 or len(given) != 6:
        return False
    return all(like(one, other) for one, other in zip(wanted, given, strict=True))


def _same(pattern: str, text: str) -> bool:
    return plain(pattern) == text


def _same_in_any_case(pattern: str, text: str) -> bool:
    return plain(pattern).lower() == text.lower()


@lru_cache(100_000)
def _network(pattern: str, text: str) -> bool:
    return ipaddress.ip_address(text) in ipaddress.ip_network(plain(pattern), strict=False)


def moment(text: str) -> float:
    """Return the seconds since 1970 of an ISO 8601 date or of a number of seconds."""
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return float(text)
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _compared(read: Callable[[str], float], compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    def test(pattern: str, text: str) -> bool:
        try:
            return compare(read(text), read(plain(pattern)))
        except ValueError:
            return False

    return test


_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "Equals": lambda given, limit: given == limit,
    "LessThan": lambda given, limit: given < limit,
    "LessThanEquals": lambda given, limit: given <= limit,
    "GreaterThan": lambda given, limit: given > limit,
    "GreaterThanEquals": lambda given, limit: given >= limit,
}
_POSITIVE: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": _same,
    "StringEqualsIgnoreCase": _same_in_any_case,
    "StringLike": like,
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": _same_in_any_case,
    "BinaryEquals": _same,
    "IpAddress": _network,
    **{f"Numeric{name}": _compared(float, order) for name, order in _ORDERS.items()},
    **{f"Date{name}": _compared(moment, order) for name, order in _ORDERS.items()},
}
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NotIpAddress": "IpAddress",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
}
_POSITIVE_IN_LOWER = {name.lower(): test for name, test in _POSITIVE.items()}
_NEGATED_IN_LOWER = {name.lower(): _POSITIVE[positive] for name, positive in _NEGATED.items()}


def known(operator: str) -> bool:
    """True if IAM has the operator."""
    return _parts(operator)[1] in {*_POSITIVE_IN_LOWER, *_NEGATED_IN_LOWER, "null"}


@lru_cache(10_000)
def _parts(operator: str) -> tuple[str, str, bool]:
    """Return the set operator, the operator in small letters, and True for IfExists."""
    qualifier, colon, name = operator.lower().rpartition(":")
    name = name if colon else operator.lower()
    return qualifier, name.removesuffix("ifexists"), name.endswith("ifexists")


def holds(operator: str, wanted: tuple[str, ...], given: Values, request: Mapping[str, Values]) -> bool:
    """True if the condition `operator` with the policy's values `wanted` holds for the key's values in a request.

    request: all keys of the request, for policy variables.
    """
    qualifier, name, if_exists = _parts(operator)
    if name == "null":
        return any((value.lower() == "true") == (given is None) for value in wanted)
    if given is None and if_exists:
        return True
    negated = name in _NEGATED_IN_LOWER
    if given is None:
        return qualifier == "forallvalues" or (negated and qualifier != "foranyvalue")
    match = (_NEGATED_IN_LOWER if negated else _POSITIVE_IN_LOWER)[name]
    patterns = [pattern for pattern in (expand(text, request) for text in wanted) if pattern is not None]
    found = [any(match(pattern, value) for pattern in patterns) != negated for value in given]
    if qualifier == "forallvalues":
        return all(found)
    return any(found) if not negated or qualifier == "foranyvalue" else all(found)
