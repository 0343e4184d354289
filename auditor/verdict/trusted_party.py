"""Find the entry of the setting `trusted` that makes a party an insider, or everybody at a place."""

from __future__ import annotations

from auditor.model.access import AudienceKind
from auditor.verdict.places import Place
from auditor.verdict.principals import Party
from auditor.verdict.trust import Trust


def trusting_entry(trust: Trust, party: Party, place: Place) -> str | None:
    """Return the entry that trusts the party, or else the place; None if there is none."""
    return trusted_party(trust, party) or trusted_place(trust, place)


def trusted_party(trust: Trust, party: Party) -> str | None:
    """Return the entry that trusts the party; None if there is none."""
    if party.vended:
        return None  # its grantees are trusted one by one
    if party.kind in (AudienceKind.DIRECTORY_USER, AudienceKind.DIRECTORY_GROUP) and party.name is not None:
        return trust.exactly(party.name)
    if party.service is not None:
        source = next(filter(None, map(trust.source, filter(None, (party.source, party.source_account)))), None)
        if source is None and party.source_organization:
            named = party.source if party.source and party.source.startswith("o-") else party.source_organization
            source = trust.organization(named)
        return source or trust.principal("Service", party.service)
    if party.provider is not None:
        provider = trust.principal("Federated", party.provider)
        return provider or (trust.organization(party.organization) if party.organization else None)
    found = trust.canonical(party.canonical) if party.canonical else None
    if found is None and (name := party.arn or party.account):
        found = trust.principal("AWS", name)
    if found is None and party.unique_id:
        found = trust.principal("AWS", party.unique_id)
    if found is None and party.grants:
        found = trust.source(party.grants)
    if found is None and party.organization:
        found = trust.organization(party.organization)
    return found


def trusted_place(trust: Trust, place: Place) -> str | None:
    """Return the entry that trusts each request from the place; None if there is none."""
    if place.network is not None:
        return trust.network(str(place.network))
    for name in (place.vpc_endpoint, place.vpc):
        if name is not None and (entry := trust.exactly(name)) is not None:
            return entry
    for account in place.accounts:
        if (entry := trust.principal("AWS", account)) is not None:
            return entry
    if place.endpoint_organization and (entry := trust.organization(place.endpoint_organization)) is not None:
        return entry
    if place.point is None or place.kind is None:
        return None
    return trust.source(place.point) or (trust.principal("AWS", place.point_account) if place.point_account else None)
