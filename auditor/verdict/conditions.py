"""The condition operators of IAM, as AWS and as Ceph evaluate them. compile_test() compiles one test of a policy, and
the test then tells which values of a request meet it.

A comparison takes one value of a request and all values that a policy's test lists. Source: IAM user guide, pages
"Condition operators", "Single-valued vs. multivalued context keys" and "Variables and tags".
"""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.bucket import Semantics
from auditor.model.wildcard import Part, Variable, Wild, variables_of
from auditor.verdict.domains import Domain
from auditor.verdict.globs import Glob, Sieve
from auditor.verdict.networks import EVERY_ADDRESS, Network, parse_address, parse_network
from auditor.verdict.variables import Bound, bind, parts_of

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_NUMBER: Final = r"[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,2})?"
_EPOCH: Final = r"-?([0-9]{1,3}|[0-9]{5,60})(\.[0-9]{1,60})?"
_DATE: Final = (
    r"[0-9]{4}-[0-9]{2}(-[0-9]{2}"
    r"(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](?P<fraction>\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?)?"
    r"|[0-9]{8}T([01][0-9]|2[0-3])([0-5][0-9]){2}Z"
)


RELATIONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "equals": eq,
    "lessthan": lt,
    "lessthanequals": le,
    "greaterthan": gt,
    "greaterthanequals": ge,
}
"""The relations between the value of a request and a policy's value, by the word that an operator has for each."""

MOST_DIGITS: Final = 40
"""Largest number of characters of a number or a date: compile_test() refuses a longer one."""


def number(text: str) -> Decimal:
    """Read an integer or a decimal number. Raises ValueError."""
    if not re.fullmatch(_NUMBER, text):
        raise ValueError("the value is not a number")
    return Decimal(text)


def date(text: str) -> Decimal:
    """Convert a date to seconds since 1970. The text is a date of ISO 8601, as W3C restricts it, or a number of seconds
    since 1970. A date without a time zone is taken as UTC.

    Raises ValueError for any other text, and for four digits, which may be a year or seconds.
    """
    if re.fullmatch(_EPOCH, text):
        return Decimal(text)
    if not (match := re.fullmatch(_DATE, text)):
        raise ValueError("the value is not a date")
    fraction = match["fraction"] or ""
    try:
        moment = datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text.replace(fraction, ""))
    except ValueError:
        raise ValueError("the value is not a date") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - EPOCH
    return Decimal(since.days * 86_400 + since.seconds) + Decimal(f"0{fraction or '.0'}")


class Patterns(Struct, frozen=True):
    """The comparison that a value meets if it matches one of the patterns. perhaps: patterns with a policy variable
    whose text the requester chooses, so that he decides if they match.
    """

    sure: tuple[Glob, ...]
    perhaps: tuple[Sieve, ...] = ()
    _literals: frozenset[str] = frozenset()
    _others: tuple[Glob, ...] = ()

    @classmethod
    def of(cls, values: Iterable[Bound], *, ignore_case: bool = False, arn: bool = False) -> Patterns:
        """Make the patterns of a policy's values, in which the policy variables have their texts. arn: True if each
        value is an ARN, whose wildcards stay within one of its six parts. A value that is not an ARN matches nothing.
        """
        sure: list[Glob] = []
        perhaps: list[Sieve] = []
        for value in values:
            if value.chosen is not None:
                perhaps.append(value.chosen)
                continue
            parts = _arn(value.parts) if arn else value.parts
            if parts is not None:
                glob = Glob.of(parts, ignore_case=ignore_case)
                if value.sure:
                    sure.append(glob)
                else:
                    perhaps.append(Sieve((glob,)))
        exact = [None if ignore_case else glob.literal for glob in sure]
        others = tuple(glob for glob, text in zip(sure, exact, strict=True) if text is None)
        return cls(tuple(sure), tuple(perhaps), frozenset(text for text in exact if text is not None), others)

    def matches(self, value: str) -> bool | None:
        """Return whether the value matches a pattern; None if the requester can make it match or not."""
        if value in self._literals or any(glob.matches(value) for glob in self._others):
            return True
        return None if any(sieve.keeps(value) for sieve in self.perhaps) else False

    def differs(self, value: str) -> bool | None:
        """Return whether one of the patterns does not match the value; None if the requester can make it match or
        not.
        """
        if not all(glob.matches(value) for glob in self.sure) or not all(sieve.keeps(value) for sieve in self.perhaps):
            return True
        return None if self.perhaps else False


def _arn(parts: Sequence[str | Wild]) -> list[str | Wild] | None:
    """Confine the wildcards of an ARN's first five parts to their part; None if there are fewer than six parts."""
    within = {Wild.STAR: Wild.STAR_PART, Wild.ANY: Wild.PART}
    confined: list[str | Wild] = []
    colons = 0
    for part in parts:
        if isinstance(part, str):
            colons += part.count(":")
            confined.append(part)
        else:
            confined.append(within[part] if colons < 5 else part)
    return confined if colons >= 5 else None


class Ordered(Struct, frozen=True):
    """The comparison that a value meets if it is a number, or a date, in a relation to one of the limits, such as "less
    than". relation: the word for it in RELATIONS. dates: True if the limits are seconds since 1970.
    """

    relation: str
    limits: tuple[Decimal, ...]
    dates: bool = False

    def matches(self, value: str) -> bool:
        return self._relates(value, RELATIONS[self.relation])

    def differs(self, value: str) -> bool:
        """Return whether the value is a number, or a date, that does not equal one of the limits."""
        return self._relates(value, ne)

    def _relates(self, value: str, relation: Callable[[Any, Any], bool]) -> bool:
        try:
            read = date(value) if self.dates else number(value)
        except ValueError:
            return False
        return any(relation(read, limit) for limit in self.limits)


class Networks(Struct, frozen=True):
    """The comparison that a value meets if it is an IP address in one of the networks. ranges: for each IP version, the
    first and the last address of each network, as numbers in order. The ranges do not overlap.
    """

    networks: tuple[Network, ...]
    ranges: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]

    @classmethod
    def of(cls, networks: tuple[Network, ...]) -> Networks:
        four = list(collapse_addresses(network for network in networks if isinstance(network, IPv4Network)))
        six = list(collapse_addresses(network for network in networks if isinstance(network, IPv6Network)))
        ranges = [
            (version, tuple(int(n.network_address) for n in kept), tuple(int(n.broadcast_address) for n in kept))
            for version, kept in ((4, four), (6, six))
        ]
        return cls(networks, tuple(ranges))

    def cuts(self, version: int, first: int, last: int) -> Iterator[int]:
        """Yield the addresses after `first` and up to `last` at which a network begins, or that follow directly on a
        network's end.
        """
        for found, firsts, lasts in self.ranges:
            if found == version:
                yield from firsts[bisect_right(firsts, first) : bisect_right(firsts, last)]
                yield from (end + 1 for end in lasts[bisect_left(lasts, first) : bisect_left(lasts, last)])

    def matches(self, value: str) -> bool:
        address = parse_address(value)
        if address is None:
            return False
        wanted = int(address)
        for version, firsts, lasts in self.ranges:
            if version == address.version:
                i = bisect_right(firsts, wanted) - 1
                return i >= 0 and wanted <= lasts[i]
        return False


class Presence(Struct, frozen=True):
    """The comparison that looks only at whether the key is absent or present."""

    absent: bool
    present: bool

    def matches(self, value: str) -> bool:
        return self.present


Comparison = Patterns | Ordered | Networks | Presence


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


class Quantifier(Enum):
    """How a test treats a condition key with several values."""

    ONE = ""
    ALL = "forallvalues"
    ANY = "foranyvalue"


class ConditionTest(Struct, frozen=True, kw_only=True):
    """One test of a statement's Condition: a comparison, a key and its values."""

    key: str
    """The condition key as the policy writes it. key_name() returns the form that all spellings of a key share."""
    comparison: Comparison
    negated: bool = False
    if_exists: bool = False
    quantifier: Quantifier = Quantifier.ONE
    ceph: bool = False
    """True if Ceph evaluates the test. On Ceph, a negated operator is not met by an absent key; with several values, it
    is met by a value that differs from one of them."""
    variables: frozenset[str] = frozenset()
    """The condition keys of the policy variables in the values, in lower case. If there are any, call bind() before the
    test is asked."""
    _form: TextForm = TextForm()
    _values: tuple[tuple[Part, ...], ...] = ()

    @property
    def multi(self) -> bool:
        """True for the prefixes ForAllValues and ForAnyValue."""
        return self.quantifier is not Quantifier.ONE

    @property
    def every(self) -> bool:
        """True if all of several values have to meet the test; False if one is enough."""
        return self.quantifier is Quantifier.ALL or (self.negated and not self.multi and not self.ceph)

    @property
    def when_absent(self) -> bool:
        """The outcome for a request without the condition key."""
        if isinstance(self.comparison, Presence):
            return self.comparison.absent
        if self.multi and not self.ceph:
            return self.quantifier is Quantifier.ALL
        return self.if_exists or (self.quantifier is Quantifier.ALL if self.ceph else self.negated)

    def bind(self, domains: Mapping[str, Domain]) -> ConditionTest:
        """Return this test for one requester: each policy variable in the values is replaced by its text.

        domains: the values that the requester's condition keys can have, by the key in lower case. A key without a
        domain is absent. If the requester chooses the text of a variable, he also decides if a value with the variable
        matches; other uses of the same variable are not taken into account.
        """
        if not self.variables:
            return self
        return replace(
            self, comparison=self._form.compare([bound for value in self._values for bound in bind(value, domains)])
        )

    def outcome(self, values: Sequence[str] | None) -> bool | None:
        """Return whether a request with these values of the condition key meets the test. None, or no value, stands for
        an absent key. The result None means that the requester decides, by the text of a policy variable.
        """
        if isinstance(self.comparison, Presence):
            return self.comparison.present if values else self.comparison.absent
        if self.multi and not self.ceph:
            # An empty text counts as no value (IAM user guide, multivalued context keys).
            values = [value for value in values or () if value]
        if not values:
            return self.when_absent
        each = [self.of_one(value) for value in values]
        if (not self.every) in each:
            return not self.every
        return None if None in each else self.every

    def of_one(self, value: str) -> bool | None:
        """Return the outcome for one value of a condition key that is present, in the form of outcome()."""
        if self.ceph and self.negated and isinstance(self.comparison, Patterns | Ordered):
            return self.comparison.differs(value)
        match = self.comparison.matches(value)
        return None if match is None else match != self.negated


def key_name(key: str) -> str:
    """Return the form that all spellings of a condition key share. Key names are not case-sensitive. The names of
    object tags are left as they are, because two tags of an object may differ in case only.
    """
    head, slash, tag = key.partition("/")
    head = head.lower()
    return f"{head}{slash}{tag if head.startswith('s3:') else tag.lower()}"


def compile_test(
    operator: str,
    key: str,
    values: Sequence[str],
    *,
    variables: bool,
    semantics: Semantics = Semantics.AWS,
) -> ConditionTest:
    """Compile one test of a Condition. Names of operators are not case-sensitive.

    variables: True if `${key}` in a value is a policy variable, and `${*}`, `${?}` and `${$}` are the characters
    (Version 2012-10-17). semantics: the server's rules; for Ceph see as_ceph(). Raises ValueError if AWS would refuse
    the test, or if its meaning is not documented: an unknown operator, a value of the wrong form, an ARN of fewer than
    six parts.
    """
    name = operator.lower()
    quantifier = next((q for q in Quantifier if q.value and name.startswith(f"{q.value}:")), Quantifier.ONE)
    if quantifier is not Quantifier.ONE:
        name = name[len(quantifier.value) + 1 :]
    if_exists = name.endswith("ifexists")
    name = name.removesuffix("ifexists")
    known = OPERATORS.get(name)
    ceph = semantics is Semantics.CEPH
    if known is None or (name == "null" and (quantifier is not Quantifier.ONE or (if_exists and not ceph))):
        raise ValueError("the operator is unknown")
    if not key:
        raise ValueError("the operator has no key")
    comparison, parts = (as_ceph if ceph else as_aws)(name, values, variables=variables)
    return ConditionTest(
        key=key,
        comparison=comparison,
        negated=known.negated,
        if_exists=if_exists,
        quantifier=quantifier,
        ceph=ceph,
        variables=frozenset().union(*map(variables_of, parts)),
        _form=known.form,
        _values=parts,
    )
