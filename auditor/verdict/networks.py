"""Networks of IP addresses: read them from text, and tell which addresses belong to the internet."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_CIDR: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}(/[0-9]{1,3})?")


def parse_network(text: str) -> Network:
    """Read a network in CIDR notation, or one address. Bits after the prefix do not count: 203.0.113.7/24 is
    203.0.113.0/24. Raises ValueError.
    """
    if not _CIDR.fullmatch(text):
        raise ValueError("the value is not a network in CIDR notation")
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise ValueError("the value is not a network in CIDR notation") from None


def parse_address(text: str) -> Address | None:
    """Read an IP address; None if the text is not one."""
    if len(text) > 45 or not _CIDR.fullmatch(text):
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(parse_network(text) for text in texts)


EVERY_ADDRESS: Final = _networks("0.0.0.0/0", "::/0")
NOT_PUBLIC: Final = _networks(
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "224.0.0.0/3",
    "::/3",
    "4000::/2",
    "8000::/1",
)
"""The networks from which no request of the internet comes. Networks for examples in documents are left out: a policy
that names one of them means it."""


def is_broad(network: Network) -> bool:
    """True if S3 counts a policy as public that allows this network, because it is broader than /8, or /32 for IPv6."""
    return network.prefixlen < (8 if network.version == 4 else 32)
