"""The places from which requests come: the internet, a network, a VPC or its endpoint, an access point."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from auditor.model.access import AudienceKind
from auditor.verdict.networks import Network


class Doubt(Enum):
    """The unknown fact that decides whether an access point exists and lets everyone in."""

    OWN_POINTS = "the access points of the bucket owner's account were not read"
    FOREIGN_POINTS = "another account may make an access point"


@dataclass(frozen=True, slots=True)
class Place:
    """A place from which requests come. kind, name: as in Audience; None for the internet, and for a VPC of the
    requester's own.

    vpc, vpc_endpoint: the IDs of the VPC and of the VPC endpoint; None in a private place if the policies name neither.
    """

    kind: AudienceKind | None = None
    name: str | None = None
    private: bool = False
    """True for a request through a VPC endpoint."""
    network: Network | None = None
    vpc: str | None = None
    vpc_endpoint: str | None = None
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
        limited = self.network or self.vpc or self.vpc_endpoint
        return (self.own_point if self.point is not None else self.kind is None) and not limited

    @property
    def text(self) -> str | None:
        return None if self.kind is None else f"{self.kind.value} {self.name}"


INTERNET: Final = Place()
ANYWHERE: Final = Place(name="anywhere")
"""Stands for all places together, if the policies name too many places to try each one."""

OWN_VPC: Final = Place(private=True)
