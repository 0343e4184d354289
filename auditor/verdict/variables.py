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
    """Return the pattern of a text in the form of domains.Texts: `*`, `?` and `#` are wildcards."""
    return Glob.of([_SHAPE.get(part, part) for part in re.findall(r"[*?#]|[^*?#]+", text)])


def sieve(domain: Texts) -> Sieve:
    return Sieve(tuple(map(shape, domain.only)), tuple(map(shape, domain.never)))


def split(text: str, *, wildcards: bool, variables: bool) -> tuple[Part, ...]:
    """Split a condition's value. wildcards: `*` and `?` have a meaning. variables: `${key}` has one, and `${*}`, `${?}`
    and `${$}` are the characters. Raises ValueError for a malformed variable.
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
    """A value whose variables have their texts. parts: with Wild.STAR for a variable whose text the requester chooses.
    sure: False if there is such a variable, so that a match is the requester's choice. chosen: if the value is nothing
    but such a variable, the texts that the requester can choose.
    """

    parts: tuple[str | Wild, ...]
    sure: bool = True
    chosen: Sieve | None = None


def bind(parts: Sequence[Part], domains: Mapping[str, Domain]) -> list[Bound]:
    """Put the texts of the variables' keys into a value. A key that `domains` does not have is absent. The result is
    empty if a variable has no text: such a value equals nothing (IAM user guide, policy variables with no value).
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
