"""Collect the names in a policy: accounts, organizations, sources, networks, VPCs and access points.

Each name gives a party or a place to try as a requester. One more requester stands for everything without a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from auditor.model.access import AudienceKind
from auditor.verdict.conditions import key_name
from auditor.verdict.networks import Network, is_broad, parse_network
from auditor.verdict.principals import Party, account_in, is_account, is_fixed, party_of

_UNIQUE_ID: Final = re.compile(r"(A[A-Z]{3}[A-Z0-9]{4,})(:.*)?")
SOURCE_KEYS: Final = frozenset(
    {"aws:sourcearn", "aws:sourceaccount", "aws:sourceowner", "aws:sourceorgid", "aws:sourceorgpaths"}
)
GRANTS_INSTANCE: Final = "s3:accessgrantsinstancearn"
_OWNERS: Final = frozenset({"aws:sourcevpcarn", "aws:vpceaccount", "aws:vpceorgid", "aws:vpceorgpaths"})
POINT_KEYS: Final = frozenset({"s3:dataaccesspointarn", "s3:dataaccesspointaccount", "s3:accesspointnetworkorigin"})


class Names(Struct, dict=True):
    """The names in the policies of one bucket. parties: the principals that Principal or a condition names."""

    parties: dict[Party, None] = field(default_factory=dict)
    accounts: dict[str, None] = field(default_factory=dict)
    only_trusted: set[str] = field(default_factory=set)
    """The accounts that no policy names."""
    organizations: dict[str, None] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)
    unique_ids: dict[str, None] = field(default_factory=dict)
    networks: dict[Network, None] = field(default_factory=dict)
    vpcs: dict[str, None] = field(default_factory=dict)
    vpc_endpoints: dict[str, None] = field(default_factory=dict)
    vpc_arns: dict[str, None] = field(default_factory=dict)
    """ARNs of VPCs, and patterns of them that name the account."""
    endpoint_accounts: dict[str, None] = field(default_factory=dict)
    endpoint_organizations: dict[str, None] = field(default_factory=dict)
    grants_instances: dict[str, None] = field(default_factory=dict)
    """ARNs of S3 Access Grants instances, and patterns of them."""
    points: dict[str, None] = field(default_factory=dict)
    point_accounts: dict[str, None] = field(default_factory=dict)
    any_point: bool = False
    """True if a condition's value matches access points of several accounts."""
    keys: set[str] = field(default_factory=set)
    """The condition keys that occur in the policies, in lower case."""

    @property
    def arns(self) -> list[str]:
        return [party.arn for party in self.parties if party.arn is not None]

    @property
    def services(self) -> list[Party]:
        return [party for party in self.parties if party.service is not None]

    @cached_property
    def inner_networks(self) -> dict[Network, tuple[Network, ...]]:
        """For each named network, the other named networks inside it. Read this after all names were added."""
        lengths = {network.prefixlen for network in self.networks}
        found: dict[Network, list[Network]] = {}
        for network in self.networks:
            around = [network.supernet(new_prefix=length) for length in lengths if length < network.prefixlen]
            for wider in self.networks.keys() & around:
                found.setdefault(wider, []).append(network)
        return {wider: tuple(inner) for wider, inner in found.items()}

    @property
    def source_owners(self) -> list[str]:
        """The named accounts and organizations that the source of a service's request may belong to."""
        return [one for one in self.sources if is_account(one) or (one.startswith("o-") and is_fixed(one))]

    def add_trusted(self, accounts: Iterable[str]) -> None:
        """Add accounts that the setting `trusted` names."""
        for account in accounts:
            if account not in self.accounts:
                self.only_trusted.add(account)
            self._add_account(account)

    def add_principals(self, parties: Iterable[Party]) -> None:
        for party in parties:
            self._add_party(party)

    def add_test(self, key: str, values: Iterable[str]) -> None:
        """Add the names in the values of one test."""
        name = key_name(key)
        self.keys.add(name)
        for value in values:
            self._add_value(name, value)

    def _add_party(self, party: Party) -> None:
        if party.account is not None and is_account(party.account):
            self.accounts[party.account] = None
        self.parties[party] = None

    def _add_value(self, key: str, value: str) -> None:
        if key == "aws:userid" and (found := _UNIQUE_ID.fullmatch(value)):
            self.unique_ids[found[1]] = None
        elif key in ("aws:principalaccount", "kms:calleraccount", "aws:userid"):
            self._add_account(value)
        elif key == "aws:principalarn":
            self._add_arn(value)
        elif key in ("aws:principalservicename", "aws:principalservicenameslist"):
            if is_fixed(value):
                self._add_party(Party(AudienceKind.SERVICE, value, service=value))
        elif key in SOURCE_KEYS:
            if value.strip("*"):
                self.sources[value] = None
        elif key == GRANTS_INSTANCE:
            self._add_grants_instance(value)
        elif key in _OWNERS:
            self._add_owner(key, value)
        else:
            self._add_place(key, value)

    def _add_grants_instance(self, value: str) -> None:
        if value.strip("*"):
            self.grants_instances[value] = None
            self._add_account(account_in(value))

    def _add_owner(self, key: str, value: str) -> None:
        """Add the owner of a VPC endpoint or a VPC."""
        if key == "aws:sourcevpcarn":
            self._add_vpc_arn(value)
        elif key != "aws:vpceaccount":
            _add_organization(self.endpoint_organizations, value)
        elif is_account(value):
            self.endpoint_accounts[value] = None
            self._add_account(value)

    def _add_place(self, key: str, value: str) -> None:
        fixed = is_fixed(value)
        match key:
            case "aws:principalorgid" | "aws:principalorgpaths":
                _add_organization(self.organizations, value)
            case "aws:sourceip":
                self._add_network(value)
            case "aws:sourcevpc" if fixed:
                self.vpcs[value] = None
            case "aws:sourcevpce" if fixed:
                self.vpc_endpoints[value] = None
            case "s3:dataaccesspointarn":
                self._add_point(self.points, value, account_in(value))
            case "s3:dataaccesspointaccount":
                self._add_point(self.point_accounts, value, value)

    def _add_vpc_arn(self, value: str) -> None:
        parts = value.split(":")
        if len(parts) != 6:
            return
        if is_account(parts[4]):
            self.vpc_arns[value] = None
            self._add_account(parts[4])
        elif is_fixed(parts[5]):
            self.vpcs[parts[5].removeprefix("vpc/")] = None

    def _add_point(self, named: dict[str, None], value: str, account: str | None) -> None:
        if account is not None and is_account(account):
            named[value] = None
            self._add_account(account)
        else:
            self.any_point = True

    def _add_account(self, value: str | None) -> None:
        if value is not None and is_account(value):
            self._add_party(Party(AudienceKind.ACCOUNT, value, account=value))

    def _add_arn(self, value: str) -> None:
        account = account_in(value)
        if account is None:
            return
        party = party_of("AWS", value)
        if party is None:
            self._add_account(account)
        self._add_party(party or Party(AudienceKind.ACCOUNT, value, account=account, arn_pattern=value))

    def _add_network(self, value: str) -> None:
        try:
            network = parse_network(value)
        except ValueError:
            return
        if not is_broad(network):
            self.networks[network] = None


def _add_organization(named: dict[str, None], value: str) -> None:
    """Add the organization of an ID or of a path, unless a wildcard stands in it."""
    organization = value.partition("/")[0]
    if organization and is_fixed(organization):
        named[organization] = None
