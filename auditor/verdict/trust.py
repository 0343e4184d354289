"""Hold the entries of the setting `trusted`: for each requester, place or source of a policy, the entry that trusts it.

An entry is one of these texts:

* an AWS account's 12 digits, or the ARN of its root: the account with all of its principals and resources;
* the ARN of a principal; a role's ARN stands for its sessions too;
* a canonical ID, a user ID of another server (USER or TENANT$USER on Ceph), the unique ID of a principal;
* an organization (o-..), or a path below it (o-../r-../ou-../);
* a VPC (vpc-..) or a VPC endpoint (vpce-..);
* a network in CIDR notation, or one address;
* a service or an identity provider, as a policy names it; a group of ACLs by its URI;
* a user or a group of the corporate directory by its UUID, as S3 Access Grants names it;
* the ARN of a source, such as a CloudFront distribution or a bucket; a distribution also by its ID.

No entry trusts everyone: `*` and the two public groups trust nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Final, NamedTuple, Self

from auditor.model.object import PUBLIC_GROUPS

FORMS: Final = (
    "an account (12 digits), the ARN of a principal or source, a canonical or user ID, an organization (o-..),"
    " a VPC (vpc-..) or VPC endpoint (vpce-..), a network (CIDR, of at most /8 or in IPv6 /32), a service principal,"
    " the ID of a CloudFront distribution or the UUID of a directory user or group"
)
"""The forms of an entry in words, for messages."""

WIDEST: Final = {4: 8, 6: 32}
"""The shortest prefix of a trusted network, by IP version. S3 counts a policy for a wider network as public."""

_MOST_CHARACTERS: Final = 2048
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_ORGANIZATION: Final = re.compile(r"o-[a-z0-9]+(/[a-z0-9-]+)*/?")
_PLACE: Final = re.compile(r"vpce?-[0-9a-z]+")
_ARN: Final = re.compile(r"arn:[a-z-]+:[a-z0-9.-]+:[a-z0-9-]*:[^:*?]*:.+")
_WILDCARD: Final = re.compile(r"[*?]")

Network = IPv4Network | IPv6Network


def check_entry(text: str) -> None:
    """Raise ValueError, with the reason and the fix, for a text that has no form of an entry."""
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"an entry has at most {_MOST_CHARACTERS} characters")
    if _WILDCARD.search(text):
        raise ValueError("an entry has no wildcard: name the account or each principal")
    if text in PUBLIC_GROUPS:
        raise ValueError("a public group is everyone, whom no entry trusts")
    if text.startswith("arn:"):
        if not _ARN.fullmatch(text) or not text.isprintable():
            raise ValueError("an ARN has six parts: arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE")
    elif (network := _network(text)) is not None:
        if network.prefixlen < WIDEST[network.version]:
            raise ValueError(f"a network wider than /{WIDEST[network.version]} is public: name smaller ones")
    else:
        _check_name(text)


def _check_name(text: str) -> None:
    """Raise ValueError for a text that has no form of an entry. text: neither an ARN nor a network."""
    if re.search(r"\s", text) or not text.isprintable():
        raise ValueError("only an ARN may have a blank: write commas between entries")
    if re.fullmatch(r"[0-9]{4}-[0-9]{4}-[0-9]{4}", text):
        raise ValueError("write an account's 12 digits without hyphens")
    if text.startswith(("vpc-", "vpce-")) and not _PLACE.fullmatch(text):
        raise ValueError("a VPC or a VPC endpoint is vpc-ID or vpce-ID, with digits and small letters")
    if "/" in text and "://" not in text and not _ORGANIZATION.fullmatch(text):
        raise ValueError(f"give {FORMS}")


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
        if scheme != "arn" or len(parts) != 5 or _WILDCARD.search("".join(parts[:4])):
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
            if kind == "root" and _ACCOUNT.fullmatch(arn.account):
                self._accounts.setdefault(arn.account, entry)
            elif kind == "role":
                self._roles[arn.account, name.rpartition("/")[2]] = entry
            elif kind == "user":
                self._users[f"{arn.account}${name}" if arn.account else name] = entry
        elif _ACCOUNT.fullmatch(entry):
            self._accounts[entry] = entry
        elif _ORGANIZATION.fullmatch(entry):
            self._paths[entry.rstrip("/")] = entry
        elif (network := _network(entry)) is not None and network.prefixlen >= WIDEST[network.version]:
            self._networks.append((network, entry))

    # ---- the questions

    def principal(self, kind: str, value: str) -> str | None:
        """Return the entry that trusts a policy's principal. kind: AWS, CanonicalUser, Service or Federated."""
        if kind != "AWS":
            return self.canonical(value) if kind == "CanonicalUser" else self._exactly(value)
        if (entry := self._exactly(value) or self._account(value)) is not None:
            return entry
        arn = Arn.parse(value)
        if arn is None or arn.service not in ("iam", "sts"):
            return None
        kind_of_name, _, name = arn.resource.partition("/")
        if kind_of_name == "assumed-role":
            role = self._roles.get((arn.account, name.partition("/")[0]))
            return self._note(role) or self._account(arn.account)
        if arn.account == "cloudfront":  # user/CloudFront Origin Access Identity E2ABCD
            return self._exactly(name.rpartition(" ")[2])
        # Ceph writes a user's name here; the canonical ID of such a user is USER, or TENANT$USER.
        user = arn.resource.removeprefix("user/")
        return self._account(arn.account) or self._exactly(f"{arn.account}${user}" if arn.account else user)

    def canonical(self, canonical_id: str) -> str | None:
        """Return the entry that trusts an owner or a grantee: a canonical ID, or the URI of a group of ACLs."""
        return self._exactly(canonical_id) or self._note(self._users.get(canonical_id))

    def organization(self, organization: str) -> str | None:
        """Return the entry that trusts an organization (o-..), or a path below one (o-../r-../ou-../). A trusted
        organization or path contains the paths below it.
        """
        path = organization.rstrip("/*")
        if _WILDCARD.search(path):
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
        asked = _network(cidr)
        if asked is None or not any(_within(asked, whole) for whole in self._united):
            return None
        for network, entry in self._networks:
            if _within(asked, network):
                return self._note(entry)
        parts = [entry for network, entry in self._networks if _within(network, asked)]
        self._used.update(parts)
        return parts[0]

    def directory(self, directory_id: str) -> str | None:
        """Return the entry that trusts a user or a group of the corporate directory, by its UUID."""
        return self._exactly(directory_id)

    def place(self, place: str) -> str | None:
        """Return the entry that trusts a VPC (vpc-..) or a VPC endpoint (vpce-..)."""
        return self._exactly(place)

    def source(self, source: str) -> str | None:
        """Return the entry that trusts the source of a service's request: an ARN, which may have wildcards in its
        resource, or an account.
        """
        if (entry := self._exactly(source) or self._account(source)) is not None:
            return entry
        arn = Arn.parse(source)
        if arn is None:
            return None
        if (entry := self._account(arn.account)) is not None:
            return entry
        distribution = arn.resource.removeprefix("distribution/")
        return self._exactly(distribution) if arn.service == "cloudfront" else None

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

    def _exactly(self, text: str) -> str | None:
        return self._note(text if text in self._entries else None)

    def _account(self, number: str) -> str | None:
        return self._note(self._accounts.get(number))

    def _note(self, entry: str | None) -> str | None:
        if entry is not None:
            self._used.add(entry)
        return entry


def _network(text: str) -> Network | None:
    """Return the network that a text names in CIDR notation or by one address, with the host bits cleared; None for
    another text.
    """
    if not re.match(r"[0-9a-fA-F:.]+(/[0-9]+)?$", text) or not ("." in text or ":" in text):
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _within(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)
