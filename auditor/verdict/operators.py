"""The condition operators of IAM, as AWS and as Ceph evaluate them.

Source: IAM user guide, page "Condition operators".
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from auditor.model.wildcard import Part, Variable, Wild, variables_of
from auditor.verdict.comparisons import RELATIONS, Comparison, Networks, Ordered, Patterns, Presence, date, number
from auditor.verdict.globs import Glob, Sieve
from auditor.verdict.networks import EVERY_ADDRESS, Network, parse_network
from auditor.verdict.variables import Bound, bind, parts_of

MOST_DIGITS: Final = 40
"""Largest number of characters of a number or a date: compile_test() refuses a longer one."""

Compiled = tuple[Comparison, tuple[tuple[Part, ...], ...]]
"""A comparison that an operator makes; and the parts of the values, in case they have policy variables."""


class TextForm(NamedTuple):
    """The way in which an operator compares texts."""

    wildcards: bool = False
    ignore_case: bool = False
    arn: bool = False

    def compare(self, values: Sequence[Bound]) -> Patterns:
        return Patterns.of(values, ignore_case=self.ignore_case, arn=self.arn)


class Operator(NamedTuple):
    """A condition operator without its prefix and suffix. make: makes the comparison with the policy's values; None if
    the operator compares with patterns.
    """

    negated: bool
    form: TextForm
    make: Callable[[Sequence[str]], Comparison] | None = None


def _ordered(relation: str, dates: bool) -> Callable[[Sequence[str]], Comparison]:
    read = date if dates else number

    def make(values: Sequence[str]) -> Comparison:
        if any(len(value) > MOST_DIGITS for value in values):
            raise ValueError("the value has too many digits")
        return Ordered(relation, tuple(map(read, values)), dates)

    return make


def _networks(values: Sequence[str]) -> Comparison:
    return Networks.of(tuple(map(parse_network, values)))


def _truths(values: Sequence[str]) -> list[str]:
    lowered = [value.lower() for value in values]
    if not set(lowered) <= {"true", "false"}:
        raise ValueError("the value is neither true nor false")
    return lowered


def _truth(values: Sequence[str]) -> Comparison:
    return Patterns.of([Bound((value,)) for value in _truths(values)], ignore_case=True)


def _presence(values: Sequence[str]) -> Comparison:
    lowered = _truths(values)
    return Presence(absent="true" in lowered, present="false" in lowered)


def _binary(values: Sequence[str]) -> Comparison:
    try:
        for value in values:
            b64decode(value, validate=True)
    except ValueError:
        raise ValueError("the value is not in base64") from None
    return Patterns.of([Bound((value,)) for value in values])


_EQUALS: Final = TextForm()
_IGNORE_CASE: Final = TextForm(ignore_case=True)
_LIKE: Final = TextForm(wildcards=True)
_ARN: Final = TextForm(wildcards=True, arn=True)

OPERATORS: Final[dict[str, Operator]] = {
    "stringequals": Operator(False, _EQUALS),
    "stringnotequals": Operator(True, _EQUALS),
    "stringequalsignorecase": Operator(False, _IGNORE_CASE),
    "stringnotequalsignorecase": Operator(True, _IGNORE_CASE),
    "stringlike": Operator(False, _LIKE),
    "stringnotlike": Operator(True, _LIKE),
    "arnequals": Operator(False, _ARN),
    "arnlike": Operator(False, _ARN),
    "arnnotequals": Operator(True, _ARN),
    "arnnotlike": Operator(True, _ARN),
    "bool": Operator(False, _EQUALS, _truth),
    "binaryequals": Operator(False, _EQUALS, _binary),
    "ipaddress": Operator(False, _EQUALS, _networks),
    "notipaddress": Operator(True, _EQUALS, _networks),
    "null": Operator(False, _EQUALS, _presence),
    "numericnotequals": Operator(True, _EQUALS, _ordered("equals", dates=False)),
    "datenotequals": Operator(True, _EQUALS, _ordered("equals", dates=True)),
    **{f"numeric{word}": Operator(False, _EQUALS, _ordered(word, dates=False)) for word in RELATIONS},
    **{f"date{word}": Operator(False, _EQUALS, _ordered(word, dates=True)) for word in RELATIONS},
}


def as_aws(name: str, values: Sequence[str], *, variables: bool) -> Compiled:
    known = OPERATORS[name]
    if known.make is not None:
        return known.make(values), ()
    form = known.form
    parts = tuple(parts_of(v, wildcards=form.wildcards, variables=variables) for v in values)
    if form.arn and not all(map(_has_six_parts, parts)):
        raise ValueError("the value is not an ARN")
    return form.compare([bound for value in parts for bound in bind(value, {})]), parts


def _has_six_parts(value: Sequence[Part]) -> bool:
    """True if the value has the six parts of an ARN, or may have them because a policy variable can contain the missing
    parts.
    """
    return bool(variables_of(value)) or sum(part.count(":") for part in value if isinstance(part, str)) >= 5


# ---- Ceph


def as_ceph(name: str, values: Sequence[str], *, variables: bool) -> Compiled:
    """Compile an operator as Ceph 16.2 evaluates it, which was tried on its gateway.

    Null does not look at its values. A policy variable is expanded only if it is the whole value, in every Version; the
    other values are then ignored. A value that is not a network is ignored. Operators on ARNs are never met; newer
    versions of Ceph know them, so their outcome is left unknown.
    """
    known = OPERATORS[name]
    if name == "null":
        return Presence(absent=True, present=False), ()
    if known.form.arn:
        return Patterns((), (Sieve((Glob.of([Wild.STAR]),)),)), ()
    if name in ("ipaddress", "notipaddress"):
        return Networks.of(tuple(network for value in values for network in _ceph_networks(value))), ()
    if known.make is not None:
        return known.make(values), ()
    if any(value.startswith("${") and value.endswith("}") for value in values):
        last = values[-1].removeprefix("${").removesuffix("}")
        parts: tuple[tuple[Part, ...], ...] = ((Variable(last.lower(), None),),)
    else:
        wildcards = known.form.wildcards
        parts = tuple(parts_of(value, wildcards=wildcards, variables=False) for value in values)
    return known.form.compare([bound for value in parts for bound in bind(value, {})]), parts


def _ceph_networks(text: str) -> Iterator[Network]:
    try:
        network = parse_network(text)
    except ValueError:
        return
    yield network
    if network.version == 6 and network.prefixlen <= 96 and not int(network.network_address):
        # Ceph compares the leading bits of both, whatever the version: these of each IPv4 address are zeros.
        yield EVERY_ADDRESS[0]
