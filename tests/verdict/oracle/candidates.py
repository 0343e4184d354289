"""Concrete values that are worth trying for a condition key, made from the values that a policy names."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from tests.verdict.oracle.conditions import Values, moment

FRESH_TEXT = "zz-fresh"
_WILD = re.compile(r"[*?]")


def has_wildcard(text: str) -> bool:
    return _WILD.search(text) is not None


def instances(pattern: str, fillings: Iterable[str] = ("", "q")) -> Iterator[str]:
    """Return texts that a pattern matches: each filling in the place of each star, and one letter for a mark."""
    for filling in fillings:
        yield pattern.replace("*", filling).replace("?", filling[:1] or "q")


def texts(wanted: Sequence[str]) -> list[str]:
    """Return texts for a key that conditions compare with `wanted`: literals, instances, other cases, other texts."""
    words = [piece for text in wanted for piece in _WILD.split(text) if piece]
    found = [FRESH_TEXT, "q", ""]
    for text in wanted:
        found += [text, text.swapcase(), text.lower(), text.upper(), f"{text}q", f"q{text}"]
        found += instances(text, ("", "q", "Q/q", *words))
    return list(dict.fromkeys(found))


def numbers(wanted: Sequence[str]) -> list[str]:
    """Return numbers at, below and above each number that conditions compare with, and between any two."""
    limits = sorted({float(text) for text in wanted if _number(text)})
    found = [0.0, *limits]
    for limit in limits:
        found += [limit - 1, limit + 1, limit - 0.5, limit + 0.5]
    found += [(one + other) / 2 for one, other in itertools.pairwise(limits)]
    return [f"{number:g}" if number != int(number) else str(int(number)) for number in dict.fromkeys(found)]


def _number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def of_any_kind(wanted: Sequence[str]) -> list[Values]:
    """Return values for a key of which nothing is known: absent, texts, numbers, dates, addresses, truth values, and
    two texts at once.
    """
    found = [*texts(wanted), "true", "false"]
    if any(_number(text) for text in wanted):
        found += numbers(wanted)
    for text in wanted:
        found += _near(text)
    pairs: list[Values] = [(one, other) for one in wanted for other in (*wanted, FRESH_TEXT) if one != other]
    return [None, *((text,) for text in dict.fromkeys(found)), *pairs]


def _near(text: str) -> list[str]:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        pass
    else:
        return [str(address) for address in around(network)]
    if ":" in text and text[:4].isdigit():
        seconds = moment(text)
        return [str(int(seconds - 1)), str(int(seconds + 1))]
    if text.startswith("arn:"):
        return list(instances(text, ("q", "q/q")))
    return []


Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def around(network: Network) -> list[Address]:
    """Return the first and last address of a network, one of its middle, and its two neighbours."""
    first, last = int(network.network_address), int(network.broadcast_address)
    kind = type(network.network_address)
    most = 2**network.max_prefixlen - 1
    return [kind(place) for place in (first, last, (first + last) // 2, first - 1, last + 1) if 0 <= place <= most]


def networks(wanted: Iterable[str]) -> list[Network]:
    """Return the networks among the texts."""
    found: list[Network] = []
    for text in wanted:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            continue
    return list(dict.fromkeys(found))


def is_narrow(network: Network) -> bool:
    """True if a network is one that somebody may have for himself; S3 calls a broader one public."""
    return network.prefixlen >= (8 if network.version == 4 else 32)


_PRIVATE = [ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
_NOWHERE = [
    *map(ipaddress.ip_network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")),
    *map(ipaddress.ip_network, ("::/127", "fc00::/7", "fe80::/10", "ff00::/8")),
]


def of_the_internet(address: Address) -> bool:
    """True if a stranger can have the address on the internet."""
    return not any(address in network for network in (*_PRIVATE, *_NOWHERE))
