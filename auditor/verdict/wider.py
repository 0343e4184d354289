"""Find the wider audiences that contain an audience, by their names: its account, a wider network, a pattern that
matches its ARN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

from auditor.model.access import Audience, AudienceKind
from auditor.verdict.networks import parse_network, wider_than
from auditor.verdict.principals import is_account, is_fixed
from auditor.verdict.wildcard import matches_arn

_SIGNED: Final = frozenset(
    {
        AudienceKind.ACCOUNT,
        AudienceKind.CANONICAL_ID,
        AudienceKind.GROUP,
        AudienceKind.IDENTITY_PROVIDER,
        AudienceKind.ORGANIZATION,
    }
)
"""The kinds of audiences whose requesters all belong to the audience "any AWS account"."""


class WiderAudiences:
    """Finds the wider audiences that contain an audience, by their names. audiences: those among which to look."""

    def __init__(self, audiences: Iterable[Audience]) -> None:
        named: dict[AudienceKind, dict[str, None]] = {}
        for one in audiences:
            for kind, name in (_party(one), _way(one)):
                if kind is not None and name is not None:
                    named.setdefault(kind, {})[name] = None
        self._lengths = {parse_network(name).prefixlen for name in named.get(AudienceKind.NETWORK, ())}
        self._patterns = [name for name in named.get(AudienceKind.ACCESS_POINT, ()) if not is_fixed(name)]

    def of(self, audience: Audience) -> Iterator[Audience]:
        """Yield the audiences that contain this one, whether they get in or not. An audience with a limit is inside the
        same audience without the limit, and inside the audience of its network or access point.
        """
        kind, place = _way(audience)
        places = [] if kind is None or place is None else [place, *self._wider(kind, place)]
        limits = [*(f"{kind} {name}" for name in places), *([] if places else [audience.through]), None]
        parties = [_party(audience), *((audience.kind, name) for name in self._wider(*_party(audience)))]
        if audience.kind in _SIGNED:
            parties.append((AudienceKind.ANY_ACCOUNT, None))
        for (party, name), through in product(parties, limits):
            if (wider := Audience(party, name, through)) != audience:
                yield wider
        if kind is not None:
            yield from (Audience(kind, name) for name in places)

    def _wider(self, kind: AudienceKind, name: str | None) -> Iterator[str]:
        """Yield the wider names of the same kind, of audiences that contain this one."""
        if name is None:
            return
        if kind is AudienceKind.NETWORK:
            yield from map(str, wider_than(parse_network(name), self._lengths))
        elif kind in (AudienceKind.ACCOUNT, AudienceKind.SOURCE):
            parts = name.split(":", 5)
            if len(parts) == 6 and is_account(parts[4]):
                yield parts[4]
        elif kind is AudienceKind.ACCESS_POINT:
            yield from (one for one in self._patterns if one != name and matches_arn(one, name))


def _party(audience: Audience) -> tuple[AudienceKind, str | None]:
    return audience.kind, audience.name


def _way(audience: Audience) -> tuple[AudienceKind | None, str | None]:
    """Return kind and name of the network or access point through which an audience gets in; None and None for any
    other limit.
    """
    kind, _, name = (audience.through or "").partition(" ")
    for one in (AudienceKind.NETWORK, AudienceKind.ACCESS_POINT):
        if kind == one:
            return one, name
    return None, None
