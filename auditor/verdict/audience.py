"""Name the audiences of an object: of the requesters that can reach it, only the widest ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from auditor.model import access
from auditor.model.access import Audience, AudienceKind
from auditor.verdict.places import INTERNET, OWN_VPC, Place, private_place, wider_private, wider_services
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, ANY_INSTANCE, Party
from auditor.verdict.requesters import Crowd, Sender, Site
from auditor.verdict.steps import Steps

Inside = tuple[Sender, Site]
"""A requester that can reach the object: the party and the place from which it sends requests."""

PlaceName = tuple[str | None, str | None]
"""The name of a place, and of the place behind it: the fields text and via of Place."""

Headers = Mapping[tuple[Sender, PlaceName], set[str | None]]
"""The headers that the requesters have to send, by the party and the name of its place."""

STEPS_OF_AUDIENCE: Final = 30
"""Steps to name the audience of one requester."""

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


class Containment:
    """Tells which requesters of a crowd stand for narrower ones, too. A requester tells more than the name of its
    audience, such as the organization of an account. parties: those that get in by S3 Access Grants.
    """

    def __init__(self, crowd: Crowd, parties: Iterable[Party], steps: Steps) -> None:
        self._steps = steps
        self._by_party = {sender.party: sender for sender in crowd.senders}
        for party in parties:
            if party not in self._by_party:
                self._by_party[party] = Sender(party, None, {})
        self._crowd = crowd
        self._senders: dict[Sender, list[Sender]] = {}
        self._sites: dict[Site, list[Site]] = {}
        self._names: dict[Site, list[PlaceName]] = {}

    def sender(self, party: Party) -> Sender:
        """Return the sender of a party of the crowd, or of one that gets in by S3 Access Grants."""
        return self._by_party[party]

    def adds_nothing(self, inside: Mapping[Inside, str | None], sender: Sender, site: Site) -> bool:
        """True if a wider requester in `inside` stands for this party at this place, too, so that the party adds no
        audience. inside: the requesters that can reach the object, with the header that each has to send.
        """
        header = inside.get((sender, site))
        sites = self._wider_sites(site)
        own = () if site.place in (INTERNET, OWN_VPC) else sites
        stand_ins = [(sender, wide) for wide in own]
        stand_ins += [(wider, wide) for wider in self._wider_senders(sender) for wide in (site, *sites)]
        return any(one in inside and _needs_no_more(inside[one], header) for one in stand_ins)

    def is_everywhere(self, inside: Mapping[Inside, str | None], sender: Sender) -> bool:
        """True if the party, or one that contains it, gets in from the internet without a header, so that no place adds
        an audience of the party.
        """
        internet = self._crowd.sites[0]
        around = ((one, internet) for one in (sender, *self._wider_senders(sender)))
        return any(one in inside and inside[one] is None for one in around)

    def named(self, inside: Mapping[Inside, str | None]) -> tuple[Audience, ...]:
        """Return the audiences of the requesters that can reach the object, each audience once. inside: as for
        adds_nothing().
        """
        self._steps.spend(STEPS_OF_AUDIENCE * len(inside))
        headers: dict[tuple[Sender, PlaceName], set[str | None]] = {}
        for (sender, site), header in inside.items():
            headers.setdefault(_at(sender, self._wider_names(site)[0]), set()).add(header)
        return access.widest(
            audience_of(sender.party, site.place, header)
            for (sender, site), header in inside.items()
            if not self._is_named(headers, sender, site, header)
        )

    def _is_named(self, headers: Headers, sender: Sender, site: Site, header: str | None) -> bool:
        """True if the name of a wider requester stands for this party at this place, too. Several places can have one
        name: a VPC endpoint has the same name whether the policies also name its VPC or not.
        """
        own, *wider = self._wider_names(site)
        stand_ins = [_at(sender, name) for name in wider]
        stand_ins += [_at(one, name) for one in self._wider_senders(sender) for name in (own, *wider)]
        return any(_needs_no_more(wide, header) for one in stand_ins for wide in headers.get(one, ()))

    def _wider_names(self, site: Site) -> list[PlaceName]:
        """Return the name of the place, and then the other names of the places that contain it."""
        found = self._names.get(site)
        if found is None:
            places = (site.place, *_wider_places(site.place))
            found = self._names[site] = list(dict.fromkeys((place.text, place.via) for place in places))
        return found

    def _wider_sites(self, site: Site) -> list[Site]:
        found = self._sites.get(site)
        if found is None:
            sites = map(self._crowd.site_at, _wider_places(site.place))
            found = self._sites[site] = [one for one in sites if one is not None and one is not site]
        return found

    def _wider_senders(self, sender: Sender) -> list[Sender]:
        found = self._senders.get(sender)
        if found is None:
            self._steps.spend(STEPS_OF_AUDIENCE)
            parties = (self._by_party.get(one) for one in dict.fromkeys(_wider_parties(sender.party)))
            found = self._senders[sender] = [one for one in parties if one is not None and one is not sender]
        return found


def _needs_no_more(wide: str | None, narrow: str | None) -> bool:
    """True if each header that the wider requester has to send is one that the narrower requester has to send."""
    return wide is None or set(wide.split(" and ")) <= set((narrow or "").split(" and "))


def _at(sender: Sender, name: PlaceName) -> tuple[Sender, PlaceName]:
    """Return the party with the part of the name of its place that its audience tells."""
    return sender, name if sender.party.name is None else (name[0], None)


def _wider_places(place: Place) -> Iterable[Place]:
    """Yield the places that contain this one. An audience name does not tell the internet from a VPC of the requester's
    own.
    """
    yield INTERNET
    yield OWN_VPC
    if place.point is not None and place.vpc is not None and place.vpc_endpoint is not None:
        yield replace(place, vpc=None)
    else:
        yield from wider_private(place)
    if place.behind is not None:
        yield place.behind
        yield from wider_private(place.behind)
    if place.point is not None and place.vpc is not None:  # its access point takes requests from that VPC
        yield private_place(place.vpc, place.vpc_arn, None, None, None)


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
