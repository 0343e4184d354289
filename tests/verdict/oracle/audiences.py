"""Trust of one request, the audience that it stands for, and the widest of many audiences."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from auditor.model.access import Audience, AudienceKind
from tests.verdict.oracle.conditions import like, marked
from tests.verdict.oracle.identities import Who
from tests.verdict.oracle.places import Where

STRANGE_PLACES: Final = ("internet", "own-vpc")


def trusted(entries: Iterable[str], who: Who | None, where: Where | None) -> bool:
    return any(
        (who is not None and _is_who(entry, who)) or (where is not None and _is_where(entry, where))
        for entry in entries
    )


def _is_who(entry: str, who: Who) -> bool:
    identity = who.identity
    account = entry.split(":")[4] if entry.endswith(":root") else entry
    if entry.startswith("E") and any(arn.endswith(f":distribution/{entry}") for arn in who.source):
        return True
    return account in (
        identity.account,
        identity.arn,
        identity.canonical,
        identity.service,
        who.organization,
        *(() if identity.provider else who.keys.get("aws:principalaccount") or ()),
        *who.source,
        *(who.keys.get("s3:accessgrantsinstancearn") or ()),
    )


def _is_where(entry: str, where: Where) -> bool:
    if entry.startswith(("vpc-", "vpce-")):
        return (entry,) in (where.keys.get("aws:sourcevpc"), where.keys.get("aws:sourcevpce"))
    account = entry.split(":")[4] if entry.endswith(":root") else entry
    if account in where.accounts or entry == where.organization:
        return True
    return where.address is not None and _is_within(where.address, entry)


@lru_cache(10_000)
def _is_within(address: str, entry: str) -> bool:
    """True if the entry is a network that has the address."""
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def audience_of(kind: str, name: str | None, place: str, place_name: str | None, header: str | None) -> Audience:
    """Return the audience of a requester at a place. place: its kind, "" for any. header: the one that it needs."""
    if not place:
        return Audience(AudienceKind(kind), name, header)
    if kind == "anyone":
        return Audience(AudienceKind(place), place_name, header)
    return Audience(AudienceKind(kind), name, f"{place} {place_name}")


def widest_of_strangers(found: set[Audience]) -> set[Audience]:
    for kind in (AudienceKind.ANYONE, AudienceKind.ANY_ACCOUNT, AudienceKind.IDENTITY_PROVIDER):
        if some := {audience for audience in found if audience.kind is kind}:
            least = min(some, key=lambda audience: (len(audience.through or ""), audience.text))
            return {least}
    return set()


def widest(found: set[Audience]) -> set[Audience]:
    return {one for one in found if not any(one != other and _contains(other, one) for other in found)}


def _contains(wider: Audience, other: Audience) -> bool:
    """True if each requester of `other` is one of `wider`."""
    if wider.through is not None:
        party, same = replace(wider, through=None), replace(other, through=None)
        if party != same and not _contains(party, same):
            return False
        return wider.through == other.through or (
            other.through is not None and _is_inside(wider.through, other.through)
        )
    if other.through is not None:
        bare = replace(other, through=None)
        if wider == bare or _contains(wider, bare):
            return True
        place = None if other.through.startswith("header ") else Audience.parse(other.through)
        return place is not None and (wider == place or _contains(wider, place))
    return wider.kind is AudienceKind.ANYONE or other.kind in _INSIDE.get(wider.kind, ()) or _has(wider, other)


_SIGNERS: Final = ("ACCESS_GRANTS", "ACCOUNT", "ORGANIZATION", "CANONICAL_ID", "GROUP", "IDENTITY_PROVIDER")
_INSIDE: Final = {
    AudienceKind.ANY_ACCOUNT: tuple(AudienceKind[name] for name in _SIGNERS),
}
"""The kinds that are inside a kind, whatever their names are."""


def _has(wider: Audience, other: Audience) -> bool:
    """True if the audience has the other by their names. Both get in by any way."""
    if wider.kind is AudienceKind.SERVICE:
        return wider.name == "*" and other.kind is AudienceKind.SERVICE
    if wider.kind is AudienceKind.ACCESS_GRANTS:
        return other.kind is AudienceKind.ACCESS_GRANTS and like(marked(wider.name or ""), other.name or "")
    if wider.kind is not other.kind:
        return False
    if wider.kind is AudienceKind.NETWORK:
        one, two = ipaddress.ip_network(wider.name or ""), ipaddress.ip_network(other.name or "")
        return one.version == two.version and two.subnet_of(one)  # type: ignore[arg-type]
    if wider.kind is AudienceKind.ACCESS_POINT:
        return like(marked(wider.name or ""), other.name or "")
    named = wider.name != other.name and f":{wider.name}:" in (other.name or "")
    return named and wider.kind is AudienceKind.ACCOUNT


def _is_inside(wider: str, other: str) -> bool:
    """True if a named network or access point is inside another, or if the other asks for more headers."""
    if wider.startswith("header ") and other.startswith("header "):
        return set(wider[7:].split(" and ")) < set(other[7:].split(" and "))
    kinds = {wider.partition(" ")[0], other.partition(" ")[0]}
    both = kinds in ({"network"}, {"access-point"})
    return both and wider != other and _contains(Audience.parse(wider), Audience.parse(other))
