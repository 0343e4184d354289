"""The places from which requests come: the internet, a network, a VPC or its endpoint, an access point; and the sources
for which AWS services act: the resources, accounts and organizations that policies name, and their combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.access import AudienceKind
from auditor.model.wildcard import matches_arn
from auditor.verdict.domains import Domain, FixedValues, Texts, org_ids, org_paths
from auditor.verdict.named import Names
from auditor.verdict.networks import Network
from auditor.verdict.persons import Frame
from auditor.verdict.principals import ANY_SERVICE, Party, account_in, is_account, is_fixed
from auditor.verdict.steps import Steps

STEPS_OF_SOURCE: Final = 5
"""Steps to make the party of a source with its owner."""


class Doubt(Enum):
    """The unknown fact that decides whether an access point exists and lets everyone in."""

    OWN_POINTS = "the access points of the bucket owner's account were not read"
    FOREIGN_POINTS = "another account may make an access point"


class Place(Struct, frozen=True):
    """A place from which requests come. kind, name: as in Audience; None for the internet, and for a VPC of the
    requester's own.

    vpc, vpc_endpoint: the IDs of the VPC and of the VPC endpoint; None in a private place if the policies name neither.
    vpc_arn: pattern of the VPC's ARN, with the number of its account. endpoint_account, endpoint_organization: the
    owner of the VPC endpoint, and the owner's organization. None for what the policies do not name.
    """

    kind: AudienceKind | None = None
    name: str | None = None
    private: bool = False
    """True for a request through a VPC endpoint."""
    network: Network | None = None
    vpc: str | None = None
    vpc_endpoint: str | None = None
    vpc_arn: str | None = None
    endpoint_account: str | None = None
    endpoint_organization: str | None = None
    point: str | None = None
    """Pattern of the ARN of the access point that the request goes through; None for a request to the bucket itself."""
    point_account: str | None = None
    own_point: bool = False
    """True for an access point that takes requests from the internet and may let everyone in."""
    doubt: Doubt | None = None
    via: str | None = None
    """The named place from which requests come to an access point of another account, in the form of Place.text."""
    behind: Place | None = None
    """The named place from which requests come to an access point."""

    @property
    def is_open(self) -> bool:
        """True if anyone can send requests from this place: the internet, a VPC of the requester's own, or an open
        access point.
        """
        limited = self.network or self.vpc or self.vpc_endpoint or self.vpc_arn
        limited = limited or self.endpoint_account or self.endpoint_organization
        return (self.own_point if self.point is not None else self.kind is None) and not limited

    @property
    def accounts(self) -> tuple[str, ...]:
        """The numbers of the accounts that own the VPC endpoint and the VPC, as far as the policies name them."""
        of_vpc = self.vpc_arn.split(":")[4] if self.vpc_arn else None
        return tuple(one for one in (self.endpoint_account, of_vpc) if one is not None)

    @property
    def text(self) -> str | None:
        return None if self.kind is None else f"{self.kind.value} {self.name}"


INTERNET: Final = Place()
OWN_VPC: Final = Place(private=True)


def private_place(
    vpc: str | None, vpc_arn: str | None, endpoint: str | None, account: str | None, organization: str | None
) -> Place:
    """Return the place of requests through a VPC endpoint. The arguments are fields of Place; the first one that is
    given, of the narrowest kind, gives the place its name.
    """
    names = (
        (AudienceKind.VPC_ENDPOINT, endpoint),
        (AudienceKind.VPC, vpc or vpc_arn),
        (AudienceKind.VPC_ACCOUNT, account),
        (AudienceKind.VPC_ORGANIZATION, organization),
    )
    kind, name = next(((kind, name) for kind, name in names if name is not None), (None, None))
    return Place(
        kind,
        name,
        private=True,
        vpc=vpc,
        vpc_endpoint=endpoint,
        vpc_arn=vpc_arn,
        endpoint_account=account,
        endpoint_organization=organization,
    )


def wider_private(place: Place) -> Iterator[Place]:
    """Yield the private places that contain this one: those with fewer names. The VPC of a VPC endpoint with a name
    contains none of its requests by itself.
    """
    if place.point is not None or not place.private:
        return
    vpcs = dict.fromkeys([(place.vpc, place.vpc_arn), (None, None)])
    endpoints = dict.fromkeys([place.vpc_endpoint, None])
    accounts = dict.fromkeys([place.endpoint_account, None])
    organizations = dict.fromkeys([place.endpoint_organization, None])
    for (vpc, arn), endpoint, account, organization in product(vpcs, endpoints, accounts, organizations):
        found = private_place(vpc, arn, endpoint, account, organization)
        if found not in (place, OWN_VPC) and (endpoint == place.vpc_endpoint or (vpc is None and arn is None)):
            yield found


def with_sources(services: list[Party], names: Names, steps: Steps) -> Iterator[Party]:
    """Yield each service alone, and each service for each source that the policies name. Sources are also tried as
    belonging to each named account and organization, and to each account in each organization.
    """
    single = [_in_patterns(one, names) for one in dict.fromkeys(map(_source, names.sources))]
    found = dict.fromkeys(single)
    for one in single:
        for owned in _owned(one, names):
            steps.spend(STEPS_OF_SOURCE)
            found[owned] = None
    for party in services:
        yield party
        yield from (replace(one, service=party.service) for one in found)


def _owned(party: Party, names: Names) -> Iterator[Party]:
    """Yield the source as one that belongs to named accounts and organizations. A source that names its owner belongs
    to no other.
    """
    owners = dict.fromkeys(one.partition("/")[0] for one in names.source_owners)
    accounts: list[str | None] = [None]
    organizations: list[str | None] = [None]
    if party.source_organization is None:
        organizations += [one for one in owners if not is_account(one)]
        accounts += [one for one in owners if is_account(one)] if party.source_account is None else []
    for account, organization in product(accounts, organizations):
        if party.source is not None and (account or organization):
            owned = _named(party.source, account or party.source_account, organization)
            yield replace(owned, patterns=party.patterns)


def _source(text: str) -> Party:
    """Return the party that stands for any service acting for this source."""
    account = text if is_account(text) else account_in(text)
    organization = text.partition("/")[0] if text.startswith("o-") else None
    return _named(text, account, organization)


def _in_patterns(party: Party, names: Names) -> Party:
    """Return the party with the ARN patterns of the policies that match its source, in the field `patterns`."""
    text = party.source or ""
    if not text.startswith("arn:") or not is_fixed(text):
        return party
    patterns = (one for one in names.sources if one.startswith("arn:") and not is_fixed(one))
    return replace(party, patterns=tuple(one for one in patterns if matches_arn(one, text)))


def _named(text: str, account: str | None, organization: str | None) -> Party:
    of_anybody = text.startswith("arn:") and not is_fixed(text) and f":{account}:" not in text
    return Party(
        AudienceKind.SOURCE,
        account if account and of_anybody else text,
        service=ANY_SERVICE,
        source=text,
        source_account=account,
        source_organization=organization,
    )


def wider_services(party: Party) -> Iterator[Party]:
    """Yield the wider parties that contain a service with its source: services and sources."""
    if (party.service, party.source) != (ANY_SERVICE, None):
        yield Party(AudienceKind.SERVICE, ANY_SERVICE, service=ANY_SERVICE)
    if party.source is None:
        return
    yield Party(AudienceKind.SERVICE, party.service, service=party.service)
    texts = dict.fromkeys(text for text in (party.source_account, party.source_organization) if text)
    named = [*_of_owners(party, party.source), *map(_source, texts)]
    named = [replace(one, patterns=party.patterns) if one.source == party.source else one for one in named]
    for pattern in party.patterns:
        named += [*_of_owners(party, pattern), _named(pattern, party.source_account, party.source_organization)]
    if party.source_account is not None and party.source_organization is not None:
        named.append(_named(party.source_account, party.source_account, party.source_organization))
    for service in (party.service, ANY_SERVICE):
        yield from (found for one in named if (found := replace(one, service=service)) != party)
    if party.service != ANY_SERVICE:
        yield replace(party, service=ANY_SERVICE)


def _of_owners(party: Party, text: str) -> tuple[Party, Party]:
    """Return two parties for a source's text: the source whoever owns it, and the source in the account of `party`."""
    return _source(text), _named(text, party.source_account, None)


# ---- the values of their keys


def _arn(frame: Frame, party: Party) -> Domain:
    if party.source is not None and party.source.startswith("arn:"):
        if is_fixed(party.source):
            return FixedValues((party.source,))
        fixed = (one for one in frame.names.sources if one.startswith("arn:") and is_fixed(one))
        return Texts(only=(party.source,), never=tuple(one for one in fixed if one != party.source))
    never = tuple(one for one in frame.names.sources if one.startswith("arn:"))
    account = party.source_account
    only = ("arn:*",) if account is None else (f"arn:*:*:*:{account}:*", "arn:*:s3:::*")
    return Texts(only=only, never=never, may_be_absent=True)


def _account(frame: Frame, party: Party) -> Domain:
    if party.source_account is not None:
        return FixedValues((party.source_account,))
    never = [*filter(is_account, frame.names.source_owners)]
    if party.source is None and frame.own:
        never.append(frame.own)
    return Texts(only=("############",), never=tuple(never), may_be_absent=True)


def _organization(frame: Frame, party: Party) -> Domain:
    return org_ids(party.source_organization, _organizations(frame))


def _paths(frame: Frame, party: Party) -> Domain:
    return org_paths(party.source_organization, _organizations(frame), many=True)


def _organizations(frame: Frame) -> tuple[str, ...]:
    """Return the named organizations. A source that belongs to one of them is a party of its own."""
    owners = frame.names.source_owners
    return tuple(dict.fromkeys(one.partition("/")[0] for one in owners if not is_account(one)))


SOURCES: Final[dict[str, Callable[[Frame, Party], Domain]]] = {
    "aws:sourcearn": _arn,
    "aws:sourceaccount": _account,
    "aws:sourceowner": _account,
    "aws:sourceorgid": _organization,
    "aws:sourceorgpaths": _paths,
}
"""For each condition key on a service's source, the function that returns its domain. Requests without a source do not
have these keys."""
