"""List the parties, and the places of requests, that the policies of one bucket can distinguish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

from auditor.model.access import AudienceKind
from auditor.model.bucket import Semantics
from auditor.model.object import ANONYMOUS_OWNER
from auditor.verdict.identities import PLACE_KEYS
from auditor.verdict.named import GRANTS_INSTANCE, SOURCE_KEYS, Names
from auditor.verdict.places import INTERNET, OWN_VPC, Place, private_place, with_sources
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, ANY_INSTANCE, ANY_SERVICE, Party, account_in, is_fixed
from auditor.verdict.steps import Steps

_NO_VPC: Final = (None, None)
STEPS_OF_PLACE: Final = 5
"""Steps to make a place with a VPC endpoint, a VPC or an owner of one of these."""

_SERVICE_NAMES: Final = frozenset({"aws:principalisawsservice", "aws:principalservicename"})


def places_of(names: Names, semantics: Semantics, steps: Steps) -> Iterator[Place]:
    """Yield each place that the policies can distinguish from others."""
    yield INTERNET
    yield from (
        Place(AudienceKind.NETWORK, str(network), network=network)
        for network in sorted(names.networks, key=lambda one: (one.version, one.prefixlen))
    )
    if names.keys.isdisjoint(PLACE_KEYS) or semantics is Semantics.CEPH:
        return  # a Ceph gateway has no VPCs: each request has its address
    yield OWN_VPC
    for names_of_place in product(*_groups(names)):
        steps.spend(STEPS_OF_PLACE)
        endpoint, (vpc, arn), account, organization = names_of_place
        if names_of_place != (None, _NO_VPC, None, None):
            yield private_place(vpc, arn, endpoint, account, organization)


def _groups(names: Names) -> tuple[Sequence[Any], ...]:
    """Return the VPC endpoints, VPCs, accounts of endpoints and organizations of endpoints that the policies name. Each
    group begins with the entry for a request that has none of its names.
    """
    return (
        (None, *names.vpc_endpoints),
        (_NO_VPC, *_vpcs(names)),
        (None, *names.endpoint_accounts),
        (None, *names.endpoint_organizations),
    )


def _vpcs(names: Names) -> Iterator[tuple[str | None, str | None]]:
    """Yield the VPCs that the policies name: the ID, and a pattern of the ARN. One of the two may be None: the ID of an
    account's other VPCs, or the ARN of a VPC whose account is not named.
    """
    known: set[str] = set()
    for arn in names.vpc_arns:
        resource = arn.split(":")[5].removeprefix("vpc/")
        known.add(resource)
        yield resource if is_fixed(resource) else None, arn
    accounts = dict.fromkeys(arn.split(":")[4] for arn in names.vpc_arns)
    for vpc in names.vpcs:
        if vpc not in known:
            yield vpc, None
            yield from ((vpc, f"arn:*:ec2:*:{account}:vpc/{vpc}") for account in accounts)


def parties_of(names: Names, steps: Steps) -> Iterator[Party]:
    """Yield each party that the policies can distinguish from others, the two strangers first."""
    yield ANONYMOUS
    yield ANY_ACCOUNT
    yield from (Party(AudienceKind.ORGANIZATION, one, organization=one) for one in names.organizations)
    services = [party for party in names.parties if party.service is not None]
    yield from (party for party in names.parties if party.service is None and party.canonical != ANONYMOUS_OWNER)
    yield from (Party(AudienceKind.ACCOUNT, one, unique_id=one) for one in names.unique_ids)
    for text in (*names.grants_instances, ANY_INSTANCE) if GRANTS_INSTANCE in names.keys else ():
        yield Party(AudienceKind.ACCESS_GRANTS, text, account=account_in(text), grants=text)
    if not names.keys.isdisjoint(_SERVICE_NAMES | SOURCE_KEYS):
        services.append(Party(AudienceKind.SERVICE, ANY_SERVICE, service=ANY_SERVICE))
    yield from with_sources(services, names, steps)
