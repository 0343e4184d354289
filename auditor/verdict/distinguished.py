"""List the parties, and the places of requests, that the policies of one bucket can distinguish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from auditor.model.access import AudienceKind
from auditor.model.bucket import Semantics
from auditor.model.object import ANONYMOUS_OWNER
from auditor.verdict.identities import PLACE_KEYS
from auditor.verdict.named import SOURCE_KEYS, Names
from auditor.verdict.places import INTERNET, OWN_VPC, Place
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, ANY_SERVICE, Party
from auditor.verdict.sources import with_sources

MOST_PAIRS: Final = 64
"""Largest number of pairs of a named endpoint and a named VPC that are tried one by one."""

_SERVICE_NAMES: Final = frozenset({"aws:principalisawsservice", "aws:principalservicename"})


def places_of(names: Names, semantics: Semantics) -> Iterator[Place]:
    """Yield each place that the policies can distinguish from others."""
    yield INTERNET
    yield from (
        Place(AudienceKind.NETWORK, str(network), network=network)
        for network in sorted(names.networks, key=lambda one: (one.version, one.prefixlen))
    )
    if names.keys.isdisjoint(PLACE_KEYS) or semantics is Semantics.CEPH:
        return  # a Ceph gateway has no VPCs: each request has its address
    yield OWN_VPC
    yield from (Place(AudienceKind.VPC, one, private=True, vpc=one) for one in names.vpcs)
    pairs = [*names.vpcs] if len(names.vpcs) * len(names.vpc_endpoints) <= MOST_PAIRS else []
    for one in names.vpc_endpoints:
        for vpc in (None, *pairs):
            yield Place(AudienceKind.VPC_ENDPOINT, one, private=True, vpc=vpc, vpc_endpoint=one)


def parties_of(names: Names, owners: Sequence[str]) -> Iterator[Party]:
    """Yield each party that the policies can distinguish from others, the two strangers first."""
    yield ANONYMOUS
    yield ANY_ACCOUNT
    yield from (Party(AudienceKind.ORGANIZATION, one, organization=one) for one in names.organizations)
    services = [party for party in names.parties if party.service is not None]
    yield from (party for party in names.parties if party.service is None and party.canonical != ANONYMOUS_OWNER)
    yield from (Party(AudienceKind.ACCOUNT, one, unique_id=one) for one in names.unique_ids)
    if not names.keys.isdisjoint(_SERVICE_NAMES | SOURCE_KEYS):
        services.append(Party(AudienceKind.SERVICE, ANY_SERVICE, service=ANY_SERVICE))
    yield from with_sources(services, names, owners)
