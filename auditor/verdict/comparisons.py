"""The comparisons behind the condition operators. Each compares one value of a request with all values that a policy's
test lists.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from msgspec import Struct

from auditor.model.wildcard import Wild
from auditor.verdict.globs import Glob, Sieve
from auditor.verdict.networks import Network, parse_address
from auditor.verdict.variables import Bound

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
