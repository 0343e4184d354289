"""The forms of an entry of the setting `trusted`.

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
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

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
ACCOUNT: Final = re.compile(r"[0-9]{12}")
ORGANIZATION: Final = re.compile(r"o-[a-z0-9]+(/[a-z0-9-]+)*/?")
_PLACE: Final = re.compile(r"vpce?-[0-9a-z]+")
_ARN: Final = re.compile(r"arn:[a-z-]+:[a-z0-9.-]+:[a-z0-9-]*:[^:*?]*:.+")
WILDCARD: Final = re.compile(r"[*?]")

Network = IPv4Network | IPv6Network


def check_entry(text: str) -> None:
    """Raise ValueError, with the reason and the fix, for a text that has no form of an entry."""
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"an entry has at most {_MOST_CHARACTERS} characters")
    if WILDCARD.search(text):
        raise ValueError("an entry cannot contain a wildcard: name the account or each principal")
    if text in PUBLIC_GROUPS:
        raise ValueError("a public group is everyone, and no entry can trust everyone")
    if text.startswith("arn:"):
        if not _ARN.fullmatch(text) or not text.isprintable():
            raise ValueError("an ARN has six parts: arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE")
    elif (network := read_network(text)) is not None:
        if network.prefixlen < WIDEST[network.version]:
            raise ValueError(f"a network wider than /{WIDEST[network.version]} is public: name smaller ones")
    else:
        _check_name(text)


def _check_name(text: str) -> None:
    """Raise ValueError for a text that has no form of an entry. text: neither an ARN nor a network."""
    if re.search(r"\s", text) or not text.isprintable():
        raise ValueError("only an ARN may contain a space: separate entries with commas")
    if re.fullmatch(r"[0-9]{4}-[0-9]{4}-[0-9]{4}", text):
        raise ValueError("write an account's 12 digits without hyphens")
    if text.startswith(("vpc-", "vpce-")) and not _PLACE.fullmatch(text):
        raise ValueError("a VPC or a VPC endpoint is vpc-ID or vpce-ID, with digits and lowercase letters")
    if "/" in text and "://" not in text and not ORGANIZATION.fullmatch(text):
        raise ValueError(f"give {FORMS}")


def read_network(text: str) -> Network | None:
    """Return the network that a text names in CIDR notation or by one address, with the host bits cleared; None for
    another text.
    """
    if not re.match(r"[0-9a-fA-F:.]+(/[0-9]+)?$", text) or not ("." in text or ":" in text):
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None
