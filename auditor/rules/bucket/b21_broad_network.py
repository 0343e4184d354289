"""B21: the bucket policy lets in a network that is broad, or not trusted."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Final

from auditor.model.policy import EVERYONE, Policy
from auditor.rules.base import Hit, Severity, rule
from auditor.verdict.trust import Trust

BROADEST: Final = {4: 16, 6: 48}
"""The shortest prefix of a network that can be one organization's, by IP version."""
MOST_NAMED: Final = 100
OPERATORS: Final = frozenset({"ipaddress", "ipaddressifexists"})


@rule("B21", "bucket-network", Severity.MEDIUM, reads=("bucket.parsed_policy", "trust"))
def check(bucket_parsed_policy: Policy, trust: Trust) -> Iterator[Hit]:
    """
    Why: everyone in the network gets in without credentials: guests, tenants of a cloud, customers of a provider.
    Flagged: a network of an aws:SourceIp condition by which a statement lets everyone in: medium if it is broader than
        /16 (in IPv6 /48), trusted or not; low if it is narrower and not trusted.
    Not flagged: narrower networks in trusted; private addresses, from which no request from the internet comes;
        statements that name their principals.
    Blind to: networks that a Deny exempts; the owner of a network.
    Fix: name the smallest possible networks, or better, principals; add those that are yours to trusted.
    """
    found: dict[str, Hit] = {}
    for statement in bucket_parsed_policy.statements:
        if not statement.allows or not (statement.not_principal or EVERYONE in statement.principals):
            continue
        for operator, key, values in statement.conditions:
            if key.lower() == "aws:sourceip" and operator.lower() in OPERATORS:
                for value in values[:MOST_NAMED]:
                    hit = _judged(value, trust)
                    if hit is not None and hit.grantee is not None and len(found) < MOST_NAMED:
                        found[hit.grantee] = hit
    yield from found.values()


def _judged(text: str, trust: Trust) -> Hit | None:
    """Return the hit for a network of a condition; None for a harmless one, and for a text that is none."""
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    if network.prefixlen < BROADEST[network.version]:
        return Hit(f"its policy lets in a network that is broader than /{BROADEST[network.version]}", str(network))
    if network.is_private or trust.network(str(network)) is not None:
        return None
    return Hit("its policy lets in a network that is not trusted", str(network), severity=Severity.LOW)
