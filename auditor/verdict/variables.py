"""Policy variables, `${key}` and `${key, 'default'}`, in the values of conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from auditor.model.wildcard import Part, Variable, Wild, split
from auditor.verdict.domains import ABSENT, Domain, FixedValues, Texts
from auditor.verdict.globs import Glob, Sieve

_SHAPE: Final = {"*": Wild.STAR, "?": Wild.ANY, "#": Wild.DIGIT}


def shape(text: str) -> Glob:
    """Parse a pattern of domains.Texts, in which `*`, `?` and `#` are wildcards."""
    return Glob.of([_SHAPE.get(part, part) for part in re.findall(r"[*?#]|[^*?#]+", text)])


def sieve(domain: Texts) -> Sieve:
    return Sieve(tuple(map(shape, domain.only)), tuple(map(shape, domain.never)))


def parts_of(text: str, *, wildcards: bool, variables: bool) -> tuple[Part, ...]:
    """Split a condition's value as wildcard.split() does. wildcards: True if `*` and `?` are wildcards. Raises
    ValueError for a malformed variable.
    """
    parts = split(text, variables=variables)
    if any(isinstance(part, Variable) and part.malformed for part in parts):
        raise ValueError("the value has a malformed policy variable")
    return parts if wildcards else tuple(part.value if isinstance(part, Wild) else part for part in parts)


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
