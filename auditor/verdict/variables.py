"""Policy variables, `${key}` and `${key, 'default'}`, in the values of conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from auditor.verdict.domains import ABSENT, Domain, FixedValues, Texts
from auditor.verdict.globs import Glob, Sieve, Wild

_WILD: Final = {"*": Wild.STAR, "?": Wild.ANY}
_SHAPE: Final = {**_WILD, "#": Wild.DIGIT}
_ESCAPES: Final = {"${*}": "*", "${?}": "?", "${$}": "$"}
_PART: Final = re.compile(r"\$\{[^}]*\}?|[*?]|[^$*?]+|\$")
_VARIABLE: Final = re.compile(r"\$\{\s*([^\s,'{}]+)\s*(?:,\s*'([^'}]*)'\s*)?\}")


class Variable(NamedTuple):
    """A policy variable. key: the condition key in lower case. default: its text if the key is absent, or None."""

    key: str
    default: str | None


Part = str | Wild | Variable


def shape(text: str) -> Glob:
    """Parse a pattern of domains.Texts, in which `*`, `?` and `#` are wildcards."""
    return Glob.of([_SHAPE.get(part, part) for part in re.findall(r"[*?#]|[^*?#]+", text)])


def sieve(domain: Texts) -> Sieve:
    return Sieve(tuple(map(shape, domain.only)), tuple(map(shape, domain.never)))


def split(text: str, *, wildcards: bool, variables: bool) -> tuple[Part, ...]:
    """Split a condition's value into literal texts, wildcards and policy variables. wildcards: True if `*` and `?` are
    wildcards. variables: True if `${key}` is a policy variable, and `${*}`, `${?}` and `${$}` are the characters.
    Raises ValueError for a malformed variable.
    """
    parts: list[Part] = []
    for part in _PART.findall(text) if variables else re.findall(r"[*?]|[^*?]+", text):
        if variables and part.startswith("$"):
            parts.append(_dollar(part))
        else:
            parts.append(_WILD[part] if wildcards and part in _WILD else part)
    return tuple(parts)


def _dollar(part: str) -> Part:
    if part == "$" or part in _ESCAPES:
        return _ESCAPES.get(part, part)
    match = _VARIABLE.fullmatch(part)
    if match is None:
        raise ValueError("the value has a malformed policy variable")
    return Variable(match[1].lower(), match[2])


def keys(parts: Sequence[Part]) -> frozenset[str]:
    return frozenset(part.key for part in parts if isinstance(part, Variable))


class Bound(NamedTuple):
    """A condition's value in which the policy variables are replaced by their texts.

    parts: literal texts and wildcards; a variable whose text the requester chooses has become Wild.STAR. sure: False if
    there is such a variable, so that the requester decides if the value matches. chosen: the texts that the requester
    can choose, if the whole value is such a variable.
    """

    parts: tuple[str | Wild, ...]
    sure: bool = True
    chosen: Sieve | None = None


def bind(parts: Sequence[Part], domains: Mapping[str, Domain]) -> list[Bound]:
    """Replace the policy variables in a value by the texts of their condition keys. A key that `domains` lacks is
    absent. The result is empty if a variable has no text: such a value equals nothing (IAM user guide, policy variables
    with no value).
    """
    bound: list[str | Wild] = []
    sure = True
    for part in parts:
        if not isinstance(part, Variable):
            bound.append(part)
            continue
        domain = domains.get(part.key, ABSENT)
        if isinstance(domain, FixedValues):
            text = domain.values[0] if len(domain.values) == 1 else part.default
            if text is None:
                return []
            bound.append(text)
        else:
            sure = False
            bound.append(Wild.STAR)
    if len(parts) == 1 and isinstance(parts[0], Variable):
        domain = domains.get(parts[0].key, ABSENT)
        if isinstance(domain, Texts) and not domain.many:
            default = parts[0].default if domain.may_be_absent else None
            found = [Bound((Wild.STAR,), sure=False, chosen=sieve(domain))]
            return found if default is None else [*found, Bound((default,), sure=False)]
    return [Bound(tuple(bound), sure)]
