"""List the places from which requests come: the internet, a VPC of his own, and each place that a policy names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.verdict.oracle.candidates import around, instances, is_narrow, networks, of_the_internet
from tests.verdict.oracle.conditions import Values
from tests.verdict.oracle.identities import Keys
from tests.verdict.oracle.names import Named


@dataclass(frozen=True, eq=False)
class Where:
    """One place. kind: internet, own-vpc, network, vpc-endpoint or vpc; the last three have a name."""

    kind: str
    name: str | None
    keys: Keys
    address: str | None = None


def places(names: Named, vpcs: Iterable[str]) -> Iterator[Where]:
    """Return each place from which a requester can send a request, with each choice of its addresses. vpcs: those of
    access points.
    """
    listed = networks(names.values("aws:sourceip"))
    narrow = [network for network in listed if is_narrow(network)]
    for address in dict.fromkeys(address for network in (*listed, *_SOMEWHERE) for address in around(network)):
        inside = [network for network in narrow if address in network]
        keys: dict[str, Values] = {"aws:sourceip": (str(address),)}
        if inside:
            yield Where("network", str(max(inside, key=lambda network: network.prefixlen)), keys, str(address))
        elif of_the_internet(address):
            yield Where("internet", None, keys, str(address))
    vpcs = list(dict.fromkeys([*names.exact("aws:sourcevpc"), *vpcs]))
    endpoints = names.exact("aws:sourcevpce")
    own_vpcs = [text for text in _ids(names, "aws:sourcevpc", "vpc-") if text not in vpcs]
    own_endpoints = [text for text in _ids(names, "aws:sourcevpce", "vpce-") if text not in endpoints]
    private = [
        "10.9.9.9",
        *(str(address) for network in networks(names.values("aws:vpcsourceip")) for address in around(network)),
    ]
    for inner in dict.fromkeys(private):
        for vpc in (*own_vpcs, *vpcs):
            for endpoint in (*own_endpoints, *endpoints):
                keys = {"aws:sourcevpc": (vpc,), "aws:sourcevpce": (endpoint,), "aws:vpcsourceip": (inner,)}
                if endpoint in endpoints:
                    yield Where("vpc-endpoint", endpoint, keys)
                elif vpc in vpcs:
                    yield Where("vpc", vpc, keys)
                else:
                    yield Where("own-vpc", None, keys)


_SOMEWHERE: Final = networks(["8.8.8.8/32", "2600:1f00::1/128"])


def _ids(names: Named, key: str, begin: str) -> list[str]:
    """Return IDs of a requester's own VPC or endpoint that the patterns of the policy match, and another one."""
    found = [f"{begin}zzfresh"]
    for pattern in names.patterns(key):
        found += [text for text in instances(pattern, ("", "zz")) if text.startswith(begin)]
    return list(dict.fromkeys(found))
