"""Domains: the values that a condition key can have in the requests of one requester."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from auditor.verdict.networks import EVERY_ADDRESS, Network


class FixedValues(Struct, frozen=True):
    """A domain: every request has exactly these values. Without values, the key is absent from every request."""

    values: tuple[str, ...]


ABSENT: Final = FixedValues(())


class Texts(Struct, frozen=True, kw_only=True):
    """A domain: the requester chooses a text for each request."""

    only: tuple[str, ...] = ("*",)
    """Patterns of the possible values: each value matches one of them. `*` is any text, `?` any character, `#` any
    digit."""
    never: tuple[str, ...] = ()
    """Patterns of excluded values, in the same form: no value matches one of them."""
    may_be_absent: bool = False
    """True if the requester can leave the key out."""
    many: bool = False
    """True if the key is multivalued: the requester chooses one text or several, none of them empty."""


class Addresses(Struct, frozen=True, kw_only=True):
    """A domain: the requester chooses an IP address for each request."""

    only: tuple[Network, ...] = EVERY_ADDRESS
    never: tuple[Network, ...] = ()
    may_be_absent: bool = False


class Numbers(Struct, frozen=True, kw_only=True):
    """A domain: the requester chooses a whole number for each request, such as an age, or a moment in seconds since
    1970.
    """

    lowest: int = 0
    highest: int
    may_be_absent: bool = False


class Unknown(Struct, frozen=True):
    """A domain of one value that is not known. Every request has this value, or every request lacks the key."""


Domain = FixedValues | Texts | Addresses | Numbers | Unknown

UNKNOWN: Final = Unknown()


def org_ids(one: str | None, others: Iterable[str]) -> Domain:
    """Return the domain of a condition key on the ID of an organization: of `one`; if that is None, of every other than
    `others`, or of none.
    """
    return FixedValues((one,)) if one else Texts(only=("o-*",), never=tuple(others), may_be_absent=True)


def org_paths(one: str | None, others: Iterable[str], *, many: bool = False) -> Domain:
    """Return the domain of a condition key on the paths in an organization, as org_ids() does."""
    if one:
        return Texts(only=(f"{one}/*",), many=many)
    return Texts(only=("o-*/*",), never=tuple(f"{other}/*" for other in others), may_be_absent=True, many=many)
