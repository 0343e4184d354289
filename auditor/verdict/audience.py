"""Name the audiences of an object: of the requesters that can reach it, only the widest ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from auditor.model import audiences
from auditor.model.access import Audience, AudienceKind
from auditor.verdict.places import INTERNET, OWN_VPC, Place, wider_private
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, ANY_INSTANCE, Party
from auditor.verdict.sources import wider_services

Inside = tuple[Party, Place]
"""A requester that can reach the object: the party and the place from which it sends requests."""

MOST_AUDIENCES: Final = 20
"""Largest number of audiences of one object."""

_STRANGERS: Final = (ANONYMOUS, ANY_ACCOUNT)


def audience_of(party: Party, place: Place, header: str | None = None) -> Audience:
    """Return the audience that a party at a place belongs to. header: the header that the party has to send, if any."""
    through = None if header is None else f"header {header}"
    if place.kind is None:
        return Audience(party.kind, party.name, through)
    at_limited_point = place.kind is AudienceKind.ACCESS_POINT and not place.is_open
    if party == ANONYMOUS or (party == ANY_ACCOUNT and at_limited_point):
        return Audience(place.kind, place.name, through or place.via)
    return Audience(party.kind, party.name, place.text)


def named(inside: Mapping[Inside, str | None]) -> tuple[Audience, ...]:
    """Return the audiences of the requesters that can reach the object, each audience once. inside: those requesters,
    with the header that each has to send.
    """
    return audiences.widest(audience_of(*one, inside[one]) for one in inside if not adds_nothing(inside, *one))


def bounded_to(audiences: tuple[Audience, ...], most: int) -> tuple[tuple[Audience, ...], bool]:
    """Return at most `most` of the audiences, and True if some are left out.

    If there are more, each audience is named without the place through which it gets in. The first ones in the order of
    their texts are then returned.
    """
    if len(audiences) <= most:
        return audiences, False
    parties = tuple(dict.fromkeys(replace(one, through=None) for one in audiences))
    if len(parties) <= most:
        return parties, False
    return tuple(sorted(parties, key=lambda one: one.text)[:most]), True


def adds_nothing(inside: Mapping[Inside, str | None], party: Party, place: Place) -> bool:
    """True if a wider requester in `inside` stands for this party at this place, too, so that the party adds no
    audience. A requester tells more than the name of its audience, such as the organization of an account.
    """
    header = inside.get((party, place))
    return any(wider in inside and _needs_no_more(inside[wider], header) for wider in _wider(party, place))


def _needs_no_more(wide: str | None, narrow: str | None) -> bool:
    """True if each header that the wider requester has to send is one that the narrower requester has to send."""
    return wide is None or set(wide.split(" and ")) <= set((narrow or "").split(" and "))


def _wider(party: Party, place: Place) -> Iterable[Inside]:
    """Yield the requesters that contain this one. An audience name does not tell the internet from a VPC of the
    requester's own.
    """
    places = [INTERNET, OWN_VPC]
    if place not in places:
        yield from ((party, wide) for wide in places)
        places.append(place)
    narrow = place.point is not None and place.vpc is not None and place.vpc_endpoint is not None
    for wide in (replace(place, vpc=None),) if narrow else wider_private(place):
        places.append(wide)
        yield party, wide
    if place.behind is not None:
        places.append(place.behind)
        yield party, place.behind
    for wide in places:
        yield from ((one, wide) for one in _wider_parties(party))


def _wider_parties(party: Party) -> Iterable[Party]:
    """Yield the parties that contain this party."""
    if party != ANONYMOUS:
        yield ANONYMOUS
    if party not in _STRANGERS:
        yield ANY_ACCOUNT
    if party.linked is not None:
        yield (linked := replace(party.linked, organization=party.organization))
        yield from _wider_parties(linked)
        alone = replace(party, linked=None, arn=None, arn_pattern=None)
        party = replace(alone, account=None)
        yield from (party, replace(alone, unique_id=None))
    if party.service is not None:
        yield from wider_services(party)
    for pattern in () if party.service is not None else party.patterns:
        wide = Party(AudienceKind.ACCOUNT, pattern, account=party.account, arn_pattern=pattern)
        yield from dict.fromkeys((wide, replace(wide, organization=party.organization)))
    yield from _wider_grants(party)
    account = party.account if party.arn or party.arn_pattern or party.grants else None
    if account is not None:
        yield Party(AudienceKind.ACCOUNT, account, account=account)
    if party.organization is not None:
        yield replace(party, organization=None)
        if party.kind is not AudienceKind.ORGANIZATION:
            yield Party(AudienceKind.ORGANIZATION, party.organization, organization=party.organization)
        if account is not None:
            yield Party(AudienceKind.ACCOUNT, account, account=account, organization=party.organization)


def _wider_grants(party: Party) -> Iterable[Party]:
    """Yield the grantees of any S3 Access Grants instance, for those of one instance."""
    if party.grants not in (None, ANY_INSTANCE):
        wide = Party(AudienceKind.ACCESS_GRANTS, ANY_INSTANCE, grants=ANY_INSTANCE)
        yield from dict.fromkeys((wide, replace(wide, organization=party.organization)))
