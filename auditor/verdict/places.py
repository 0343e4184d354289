"""The places from which requests come: the internet, a network, a VPC or its endpoint, an access point."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import product
from typing import Final

from msgspec import Struct

from auditor.model.access import AudienceKind
from auditor.verdict.networks import Network


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
