"""Name the audiences of the requesters that get in, the widest only."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Final

from auditor.model.access import Audience, AudienceKind
from auditor.verdict.networks import parse_network, wider_than
from auditor.verdict.places import INTERNET, OWN_VPC, Place
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, Party, is_account
from auditor.verdict.sources import wider_services

Inside = tuple[Party, Place]
"""A requester that gets in: the party and the place."""

MOST_AUDIENCES: Final = 20
"""Largest number of audiences of one object."""

_STRANGERS: Final = (ANONYMOUS, ANY_ACCOUNT)


def audience_of(party: Party, place: Place, header: str | None = None) -> Audience:
    """Return the audience of a party at a place. header: the header that it has to send, if any."""
    through = None if header is None else f"header {header}"
    if place.kind is None:
        return Audience(party.kind, party.name, through)
    at_limited_point = place.kind is AudienceKind.ACCESS_POINT and not place.is_open
    if party == ANONYMOUS or (party == ANY_ACCOUNT and at_limited_point):
        return Audience(place.kind, place.name, through or place.via)
    return Audience(party.kind, party.name, place.text)


def named(inside: Mapping[Inside, str | None]) -> tuple[Audience, ...]:
    """Return the audiences of those who get in, each once. inside: the requesters with the header that each needs."""
    found = dict.fromkeys(audience_of(*one, inside[one]) for one in widest(inside))
    through = {parse_network(text) for one in found if (text := _network_of(one)) is not None}
    lengths = {network.prefixlen for network in through}
    return tuple(one for one in found if not any(wider in found for wider in _wider_audiences(one, lengths)))


def _network_of(audience: Audience) -> str | None:
    """Return the network through which the audience gets in."""
    kind, _, name = (audience.through or "").partition(" ")
    return name if kind == AudienceKind.NETWORK else None


def _wider_audiences(audience: Audience, lengths: Iterable[int]) -> Iterable[Audience]:
    """Return the same audience without a limit and from wider networks, and that of the whole account of a principal.
    lengths: the lengths of the networks' prefixes.
    """
    if audience.through is not None:
        yield replace(audience, through=None)
    if (text := _network_of(audience)) is not None:
        for network in wider_than(parse_network(text), lengths):
            yield replace(audience, through=f"{AudienceKind.NETWORK} {network}")
    if audience.kind is AudienceKind.ACCOUNT and (account := _account_in(audience.name or "")) is not None:
        yield replace(audience, name=account)
        yield replace(audience, name=account, through=None)


def bounded_to(audiences: tuple[Audience, ...], most: int) -> tuple[tuple[Audience, ...], bool]:
    """Return at most `most` of the audiences, and True if some are left out. If they are more, each is named without
    the place through which it gets in, and then the first in the order of their texts are taken.
    """
    if len(audiences) <= most:
        return audiences, False
    parties = tuple(dict.fromkeys(replace(one, through=None) for one in audiences))
    if len(parties) <= most:
        return parties, False
    return tuple(sorted(parties, key=lambda one: one.text)[:most]), True


def widest(inside: Mapping[Inside, str | None]) -> list[Inside]:
    """Leave out each requester that a wider one contains. inside: the requesters with the header that each needs."""
    lengths = {place.network.prefixlen for _, place in inside if place.network is not None}
    return [one for one in inside if not contains(inside, *one) and not _in_wider_network(*one, inside, lengths)]


def contains(inside: Mapping[Inside, str | None], party: Party, place: Place) -> bool:
    """True if one of those inside contains the requester, so that he widens no audience."""
    header = inside.get((party, place))
    return any(wider in inside and inside[wider] in (None, header) for wider in _wider(party, place))


def _wider(party: Party, place: Place) -> Iterable[Inside]:
    """Return the requesters that contain this one. An audience does not tell the internet from a VPC of its own."""
    places = [INTERNET, OWN_VPC]
    if place not in places:
        yield from ((party, wide) for wide in places)
        places.append(place)
    if place.vpc is not None and place.vpc_endpoint is not None:
        places.append(replace(place, vpc=None))
        yield party, places[-1]
    if place.behind is not None:
        places.append(place.behind)
        yield party, place.behind
    for wide in places:
        yield from ((one, wide) for one in _wider_parties(party))


def _wider_parties(party: Party) -> Iterable[Party]:
    """Return the parties to which this one belongs."""
    if party != ANONYMOUS:
        yield ANONYMOUS
    if party not in _STRANGERS:
        yield ANY_ACCOUNT
    if party.linked is not None:
        yield (linked := replace(party.linked, organization=party.organization))
        yield from _wider_parties(linked)
        party = replace(party, linked=None, account=None, arn=None, arn_pattern=None)
        yield party
    if party.service is not None:
        yield from wider_services(party)
    for pattern in party.patterns:
        wide = Party(AudienceKind.ACCOUNT, pattern, account=party.account, arn_pattern=pattern)
        yield from dict.fromkeys((wide, replace(wide, organization=party.organization)))
    account = party.account if party.arn or party.arn_pattern else None
    if account is not None:
        yield Party(AudienceKind.ACCOUNT, account, account=account)
    if party.organization is not None:
        yield replace(party, organization=None)
        if party.kind is not AudienceKind.ORGANIZATION:
            yield Party(AudienceKind.ORGANIZATION, party.organization, organization=party.organization)
        if account is not None:
            yield Party(AudienceKind.ACCOUNT, account, account=account, organization=party.organization)


def _account_in(source: str) -> str | None:
    """Return the account in the ARN of a source."""
    parts = source.split(":", 5)
    return parts[4] if len(parts) == 6 and is_account(parts[4]) else None


def _in_wider_network(party: Party, place: Place, inside: Container[Inside], lengths: Iterable[int]) -> bool:
    """True if the party, or a stranger, gets in from a wider network, too."""
    if place.network is None:
        return False
    for network in wider_than(place.network, lengths):
        wider = replace(place, name=str(network), network=network)
        if any((one, wider) in inside for one in (party, *_STRANGERS)):
            return True
    return False
