"""Read audiences from their texts, and tell which contain which, by their names: an account contains its principals, a
network the networks inside it, an organization its paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations, product
from typing import Final

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode
from auditor.model.wildcard import matches_arn

MOST_NAMED: Final = 20
"""Largest number of audiences in the line of one object."""

_KINDS: Final = {kind: place for place, kind in enumerate(AudienceKind)}
_SIGNED: Final = frozenset(
    {
        AudienceKind.ACCESS_GRANTS,
        AudienceKind.ACCOUNT,
        AudienceKind.CANONICAL_ID,
        AudienceKind.DIRECTORY_GROUP,
        AudienceKind.DIRECTORY_USER,
        AudienceKind.GROUP,
        AudienceKind.IDENTITY_PROVIDER,
        AudienceKind.ORGANIZATION,
    }
)
"""The kinds of audiences whose requesters all belong to the audience "any AWS account"."""
_PLACES: Final = frozenset(
    {
        AudienceKind.NETWORK,
        AudienceKind.VPC,
        AudienceKind.VPC_ENDPOINT,
        AudienceKind.VPC_ACCOUNT,
        AudienceKind.VPC_ORGANIZATION,
        AudienceKind.ACCESS_POINT,
    }
)
"""The kinds of audiences that are everybody at one place. The field `through` of other audiences can name a place."""
_PATTERNED: Final = frozenset(
    {AudienceKind.ACCESS_GRANTS, AudienceKind.ACCESS_POINT, AudienceKind.ACCOUNT, AudienceKind.SOURCE}
)
"""The kinds of audiences whose name can be an ARN with wildcards."""
_ANY: Final = "*"
"""The name of an audience that stands for every service, or for the grantees of any instance."""
_WILDCARD: Final = re.compile(r"[*?]")


def known_audiences(texts: Iterable[str]) -> Iterator[Audience]:
    """Yield the audiences that these texts name, in the form of Audience.text. A text of another form is left out: it
    stands for the rest of many, or is of a later version.
    """
    for text in texts:
        with suppress(ValueError):
            yield Audience.parse(text)


def contains(wide: Audience, narrow: Audience) -> bool:
    """True if each requester of the audience `narrow` is one of the audience `wide`, as far as their names tell."""
    return wide == narrow or wide in WiderAudiences((wide,)).of(narrow)


def widest(audiences: Iterable[Audience]) -> tuple[Audience, ...]:
    """Return the audiences that no other one contains, each once, in their order."""
    found = dict.fromkeys(audiences)
    wider = WiderAudiences(found)
    return tuple(one for one in found if not any(other in found for other in wider.of(one)))


@lru_cache(4096)
def listed(access: ObjectAccess) -> ObjectAccess:
    """Return the access as an object's line has it: with the MOST_NAMED widest audiences, and with a reason that says
    how many more there are. An access with fewer audiences is returned as it is.

    An audience without a limit comes before one with a limit. Then they come in the order of AudienceKind, wider
    networks first, and then in the order of their texts.
    """
    more = len(access.audience) - MOST_NAMED
    if more <= 0:
        return access
    named = tuple(sorted(access.audience, key=_order)[:MOST_NAMED])
    reason = Reason(ReasonCode.MORE_AUDIENCES, f"{more:,}")
    return ObjectAccess(access.verdict, named, (*access.reasons, reason))


def _order(audience: Audience) -> tuple[bool, int, int, str]:
    network = _network(audience.name or "") if audience.kind is AudienceKind.NETWORK else None
    length = 0 if network is None else network.prefixlen
    return audience.through is not None, _KINDS[audience.kind], length, audience.text


class WiderAudiences:
    """Finds the wider audiences that contain an audience, by their names. audiences: those among which to look."""

    def __init__(self, audiences: Iterable[Audience]) -> None:
        named: dict[AudienceKind, dict[str, None]] = {}
        for one in audiences:
            for kind, name in ((one.kind, one.name), _place(one)):
                if kind is not None and name is not None:
                    named.setdefault(kind, {})[name] = None
        networks = map(_network, named.get(AudienceKind.NETWORK, ()))
        self._lengths = {network.prefixlen for network in networks if network is not None}
        self._patterns = {kind: list(filter(_WILDCARD.search, named.get(kind, ()))) for kind in _PATTERNED}

    def of(self, audience: Audience) -> Iterator[Audience]:
        """Yield the audiences that contain this one, whether they get in or not. An audience with a limit is inside the
        same audience without the limit, and inside the audience of its place.
        """
        kind, place = _place(audience)
        places = [] if kind is None or place is None else [place, *self._wider(kind, place)]
        limits = [
            *(f"{kind} {name}" for name in places),
            *([] if places else [audience.through]),
            *_fewer_headers(audience),
            None,
        ]
        parties = [(audience.kind, audience.name)]
        parties += [(audience.kind, name) for name in self._wider(audience.kind, audience.name)]
        if audience.kind in (AudienceKind.SERVICE, AudienceKind.SOURCE):
            parties.append((AudienceKind.SERVICE, _ANY))
        if audience.kind is AudienceKind.ACCESS_GRANTS:
            parties.append((AudienceKind.ACCESS_GRANTS, _ANY))
        if audience.kind in _SIGNED:
            parties.append((AudienceKind.ANY_ACCOUNT, None))
        parties.append((AudienceKind.ANYONE, None))
        for (party, name), through in product(parties, limits):
            if (wider := Audience(party, name, through)) != audience:
                yield wider
        if kind is not None:
            yield from (Audience(kind, name) for name in places)

    def _wider(self, kind: AudienceKind, name: str | None) -> Iterator[str]:
        """Yield the wider names of the same kind, of audiences that contain this one."""
        if name is None:
            return
        if kind is AudienceKind.NETWORK and (network := _network(name)) is not None:
            yield from (str(network.supernet(new_prefix=n)) for n in self._lengths if n < network.prefixlen)
        if kind in (AudienceKind.ACCOUNT, AudienceKind.SOURCE):
            parts = name.split(":", 5)
            if len(parts) == 6 and re.fullmatch("[0-9]{12}", parts[4]):
                yield parts[4]
        if kind in (AudienceKind.ORGANIZATION, AudienceKind.SOURCE) and name.startswith("o-"):
            steps = name.split("/")
            yield from ("/".join(steps[:length]) for length in range(1, len(steps)))
        if kind in _PATTERNED:
            yield from (one for one in self._patterns[kind] if one != name and matches_arn(one, name))


def _fewer_headers(audience: Audience) -> Iterator[str]:
    """Yield the limit of an audience that has to send several headers, with some of the headers left out."""
    _, _, text = (audience.through or "").partition("header ")
    headers = text.split(" and ")
    for size in range(1, len(headers)):
        yield from (f"header {' and '.join(some)}" for some in combinations(headers, size))


def _place(audience: Audience) -> tuple[AudienceKind | None, str | None]:
    """Return kind and name of the place through which an audience gets in; None and None for any other limit."""
    kind, _, name = (audience.through or "").partition(" ")
    return (AudienceKind(kind), name) if kind in _PLACES else (None, None)


@lru_cache(4096)
def _network(name: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(name)
    except ValueError:
        return None
