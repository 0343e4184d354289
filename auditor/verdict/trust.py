"""Hold the entries of the setting `trusted`: for each requester, place or source of a policy, the entry that trusts it.

auditor.model.trusted_entry tells the forms of an entry. No entry trusts everyone: `*` and the two public groups trust
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import NamedTuple, Self

from auditor.model.object import PUBLIC_GROUPS
from auditor.model.trusted_entry import ACCOUNT, ORGANIZATION, WIDEST, WILDCARD, Network, read_network


class Arn(NamedTuple):
    """The last five parts of an ARN."""

    partition: str
    service: str
    region: str
    account: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the parts of an ARN; None for another text, and for an ARN with a wildcard before its resource, where
        the wildcard may stand for colons.
        """
        scheme, *parts = text.split(":", 5)
        if scheme != "arn" or len(parts) != 5 or WILDCARD.search("".join(parts[:4])):
            return None
        return cls(*parts)


class Trust:
    """The entries of the setting `trusted`. Each method returns the entry that trusts its argument, or None, and
    records the entry as used. An entry of no known form counts as the name of a principal.
    """

    def __init__(self, entries: frozenset[str]) -> None:
        self._entries = entries
        self._accounts: dict[str, str] = {}
        self._users: dict[str, str] = {}
        self._roles: dict[tuple[str, str], str] = {}
        self._paths: dict[str, str] = {}
        self._networks: list[tuple[Network, str]] = []
        self._used: set[str] = set()
        for entry in sorted(entries):
            self._add(entry)
        self._united: list[Network] = [
            *collapse_addresses(one for one, _ in self._networks if isinstance(one, IPv4Network)),
            *collapse_addresses(one for one, _ in self._networks if isinstance(one, IPv6Network)),
        ]

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        return cls(frozenset(entries) - PUBLIC_GROUPS - {"*"})

    def _add(self, entry: str) -> None:
        arn = Arn.parse(entry)
        if arn is not None and arn.service in ("iam", "sts"):
            kind, _, name = arn.resource.partition("/")
            if kind == "root" and ACCOUNT.fullmatch(arn.account):
                self._accounts.setdefault(arn.account, entry)
            elif kind == "role":
                self._roles[arn.account, name.rpartition("/")[2]] = entry
            elif kind == "user":
                self._users[f"{arn.account}${name}" if arn.account else name] = entry
        elif ACCOUNT.fullmatch(entry):
            self._accounts[entry] = entry
        elif ORGANIZATION.fullmatch(entry):
            self._paths[entry.rstrip("/")] = entry
        elif (network := read_network(entry)) is not None and network.prefixlen >= WIDEST[network.version]:
            self._networks.append((network, entry))

    # ---- the questions

    def principal(self, kind: str, value: str) -> str | None:
        """Return the entry that trusts a policy's principal. kind: AWS, CanonicalUser, Service or Federated."""
        if kind != "AWS":
            return self.canonical(value) if kind == "CanonicalUser" else self.exactly(value)
        if (entry := self.exactly(value) or self._account(value)) is not None:
            return entry
        arn = Arn.parse(value)
        if arn is None or arn.service not in ("iam", "sts"):
            return None
        kind_of_name, _, name = arn.resource.partition("/")
        if kind_of_name == "assumed-role":
            role = self._roles.get((arn.account, name.partition("/")[0]))
            return self._note(role) or self._account(arn.account)
        if arn.account == "cloudfront":  # user/CloudFront Origin Access Identity E2ABCD
            return self.exactly(name.rpartition(" ")[2])
        # Ceph writes a user's name here; the canonical ID of such a user is USER, or TENANT$USER.
        user = arn.resource.removeprefix("user/")
        return self._account(arn.account) or self.exactly(f"{arn.account}${user}" if arn.account else user)

    def canonical(self, canonical_id: str) -> str | None:
        """Return the entry that trusts an owner or a grantee: a canonical ID, or the URI of a group of ACLs."""
        return self.exactly(canonical_id) or self._note(self._users.get(canonical_id))

    def organization(self, organization: str) -> str | None:
        """Return the entry that trusts an organization (o-..), or a path below one (o-../r-../ou-../). A trusted
        organization or path contains the paths below it.
        """
        path = organization.rstrip("/*")
        if WILDCARD.search(path):
            return None
        while path:
            if path in self._paths:
                return self._note(self._paths[path])
            path = path.rpartition("/")[0]
        return None

    def network(self, cidr: str) -> str | None:
        """Return the entry that trusts all addresses of a network. Several trusted networks may cover the network
        together; then all of them count as used, and the first one is returned.
        """
        asked = read_network(cidr)
        if asked is None or not any(_within(asked, whole) for whole in self._united):
            return None
        for network, entry in self._networks:
            if _within(asked, network):
                return self._note(entry)
        parts = [entry for network, entry in self._networks if _within(network, asked)]
        self._used.update(parts)
        return parts[0]

    def exactly(self, text: str) -> str | None:
        """Return the entry that is this text: for a VPC (vpc-..), a VPC endpoint (vpce-..), and a user or a group of
        the corporate directory (its UUID).
        """
        return self._note(text if text in self._entries else None)

    def source(self, source: str) -> str | None:
        """Return the entry that trusts the source of a service's request: an ARN, which may have wildcards in its
        resource, or an account.
        """
        if (entry := self.exactly(source) or self._account(source)) is not None:
            return entry
        arn = Arn.parse(source)
        if arn is None:
            return None
        if (entry := self._account(arn.account)) is not None:
            return entry
        distribution = arn.resource.removeprefix("distribution/")
        return self.exactly(distribution) if arn.service == "cloudfront" else None

    @property
    def accounts(self) -> Iterable[str]:
        """The numbers of the trusted accounts."""
        return self._accounts.keys()

    # ---- the entries in use

    @property
    def used(self) -> frozenset[str]:
        """The entries that have trusted something so far."""
        return frozenset(self._used)

    @property
    def number_used(self) -> int:
        """Number of the entries that have trusted something so far."""
        return len(self._used)

    def unused(self, used_before: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the entries that trusted nothing, sorted. used_before: the entries that earlier parts of the run
        used.
        """
        return tuple(sorted(self._entries - self._used - frozenset(used_before)))

    def _account(self, number: str) -> str | None:
        return self._note(self._accounts.get(number))

    def _note(self, entry: str | None) -> str | None:
        if entry is not None:
            self._used.add(entry)
        return entry


def _within(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)
