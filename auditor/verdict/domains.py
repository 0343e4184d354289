"""The values that a condition key can have in the requests of one requester."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from auditor.verdict.networks import EVERY_ADDRESS, NOT_PUBLIC, Network


@dataclass(frozen=True, slots=True)
class FixedValues:
    """Every request has these values. Without any, the key is absent."""

    values: tuple[str, ...]


ABSENT: Final = FixedValues(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The requester chooses a text for each request."""

    only: tuple[str, ...] = ("*",)
    """Patterns; each value matches one of them. `*` is any text, `?` any character, `#` any digit."""
    never: tuple[str, ...] = ()
    """Patterns in the same form; no value matches one."""
    may_be_absent: bool = False
    """True if he can leave the key out."""
    many: bool = False
    """True if the key is multivalued: he chooses one text or several, none of them empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The requester chooses an IP address for each request."""

    only: tuple[Network, ...] = EVERY_ADDRESS
    never: tuple[Network, ...] = ()
    may_be_absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The requester chooses a whole number for each request: an age, or a moment in seconds since 1970."""

    lowest: int = 0
    highest: int
    may_be_absent: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """The value is the same in every request, or absent, but it is not known."""


Domain = FixedValues | Texts | Addresses | Numbers | Unknown

UNKNOWN: Final = Unknown()
TRUE_OR_FALSE: Final = Texts(only=("true", "false"))


def public_addresses(*, never: tuple[Network, ...] = (), may_be_absent: bool = False) -> Addresses:
    """The addresses of the internet, without some networks."""
    return Addresses(never=NOT_PUBLIC + never, may_be_absent=may_be_absent)
