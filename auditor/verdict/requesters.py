"""List the requesters of one bucket: each party at each place from which it can send requests.

Two of them are strangers, whom nothing names: everyone on the internet, unsigned, and any AWS account. The others are
the names in policies and ACLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from auditor.model.access import AudienceKind
from auditor.model.bucket import Semantics
from auditor.model.object import ANONYMOUS_OWNER
from auditor.verdict.conditions import ConditionTest, key_name
from auditor.verdict.documents import CONNECTION, Key
from auditor.verdict.domains import ABSENT, Domain, FixedValues, Unknown
from auditor.verdict.globs import TooComplexError
from auditor.verdict.identities import CONNECTIONS, PLACE_KEYS, Situation, ways_with
from auditor.verdict.named import SOURCE_KEYS, Names
from auditor.verdict.places import ANYWHERE, INTERNET, OWN_VPC, Place
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, ANY_SERVICE, Party, of_canonical
from auditor.verdict.search import Needs
from auditor.verdict.trust import Trust
from auditor.verdict.values import truth_vectors

MOST_REQUESTERS: Final = 6000
"""Largest number of requesters for which each party is tried at each place."""

MOST_SOURCES: Final = 400
"""Largest number of pairs of a named service and a named source that are tried one by one; of sources a tenth."""

MOST_LINKS: Final = 24
"""Largest number of accounts and principals of which each is tried as the one that a canonical ID stands for."""

MOST_PAIRS: Final = 64
"""Largest number of pairs of a named endpoint and a named VPC that are tried one by one."""

_VPC_KEYS: Final = frozenset({"aws:sourcevpc", "aws:sourcevpce", "aws:vpcsourceip"})
_SERVICE_NAMES: Final = frozenset({"aws:principalisawsservice", "aws:principalservicename"})

Choice = tuple[int, ...] | None
"""The achievable truth of a key's tests, as search.Options has it; None if the world decides."""


@dataclass(frozen=True, slots=True, eq=False)
class Requester:
    """One party at one place. trusted: the entry of `trusted` that makes him an insider. stranger: True for the two
    parties that nothing names, at a place that is open to everyone.
    """

    party: Party
    place: Place
    trusted: str | None
    choices: tuple[Choice, ...]
    """The achievable truth of each key, by the key's index."""
    possible: Mapping[int, tuple[int, ...]]
    """The possible truth of each key that the world decides."""
    complex: frozenset[int]
    """The keys that have too many combinations; they have all in `possible`."""

    @property
    def stranger(self) -> bool:
        return self.place.is_open and self.party in (ANONYMOUS, ANY_ACCOUNT)


class Requesters:
    """Makes the requesters of one bucket from the names in its policies."""

    def __init__(self, keys: list[Key], situation: Situation, trust: Trust, points: Iterable[Place]) -> None:
        self._keys = keys
        self._situation = situation
        self._trust = trust
        self._truth: dict[tuple[object, ...], tuple[int, ...] | None] = {}
        names = situation.names
        self._places = [*places_of(names, situation.semantics), *points]
        self._services = [INTERNET]
        linkable = [one for one in names.parties if one.account and not one.canonical]
        linkable += [Party(AudienceKind.ACCOUNT, one, unique_id=one) for one in names.unique_ids]
        self._linkable = linkable[:MOST_LINKS]
        self._links = situation.semantics is Semantics.AWS
        self._links_all = self._links and len(linkable) <= MOST_LINKS
        self._place_domains: dict[tuple[str, Place, bool], Domain] = {}
        parties = list(_parties(names))
        self.are_cut = len(parties) * len(self._places) * (1 + len(names.organizations)) > MOST_REQUESTERS
        """True if the policies name too many: a named party then counts as at any place that suits it."""
        self._party_choices: dict[Party, dict[int, tuple[tuple[int, ...] | None, bool]]] = {}
        self.named = [one for party in parties for one in self.of_party(party)]
        self._canonical: dict[Party, list[Requester]] = {}

    def of_party(self, party: Party) -> list[Requester]:
        """Return the party at each place; once for each organization that the policies name, and once outside them."""
        if self.are_cut and party.canonical is not None:
            party = replace(party, free=True)
        variants = [party]
        if not party.free and (party.canonical or party.unique_id) and self._links:
            variants = [party if self._links_all else replace(party, free=True)]
            variants += [_link(party, one) for one in self._linkable if party.canonical or not one.unique_id]
        if party.signed and not party.service and not party.organization and not party.free and party != ANY_ACCOUNT:
            named = self._situation.names.organizations
            variants += [replace(one, organization=name) for one in variants for name in named]
        places = self._services if party.service else self._places
        if self.are_cut and party not in (ANONYMOUS, ANY_ACCOUNT):
            places = [*(place for place in places if place.kind is None), ANYWHERE]
        return [
            self._make(variant, place)
            for variant in variants
            for place in places
            if place.point is None or (variant.signed and not variant.service)
        ]

    def of_grantee(self, canonical_id: str) -> list[Requester]:
        """Return the requesters for an owner or grantee of an ACL whom no policy names."""
        party = of_canonical(canonical_id)
        if "://" in canonical_id:
            party = replace(party, kind=AudienceKind.GROUP, account=None)
        found = self._canonical.get(party)
        if found is None:
            found = self._canonical[party] = self.of_party(party)
        return found

    def absent(self) -> tuple[dict[int, int], frozenset[int], dict[int, int]]:
        """Return the truth of the tests on keys that only some requests have, in a request without them; the keys that
        the requester sets by a header; and for the others the ways whose requests have them. All by the key's index.
        """
        absent: dict[int, int] = {}
        only_in: dict[int, int] = {}
        for index, key in enumerate(self._keys):
            ways = ways_with(key.name)
            if key.is_header or ways is not None:
                absent[index] = next(iter(_bits(truth_vectors([test.bind({}) for test in key.tests], ABSENT))))
            if ways is not None:
                only_in[index] = ways
        return absent, frozenset(absent.keys() - only_in.keys()), only_in

    def has_ended(self, dated: Needs) -> bool:
        """True if the tests of a statement on the date are not all true now."""
        choices = self.named[0].choices
        return any(all(option & tests != tests for option in choices[key] or (tests,)) for key, tests in dated)

    def with_tests(self, one: Requester, tests: Mapping[int, Sequence[ConditionTest]]) -> Requester:
        """Return the requester with further tests on some keys, by the key's index."""
        choices = list(one.choices)
        possible = dict(one.possible)
        domains = {name: self._domain(name, one.party, one.place) for key in self._keys for name in key.depends_on}
        for index, more in tests.items():
            key = replace(self._keys[index], tests=[*self._keys[index].tests, *more])
            truth, world = self._choice(-1 - index, key, one.party, one.place, domains, tuple(more))
            if truth is None or (world and len(truth) > 1):
                choices[index] = None
                possible[index] = truth or tuple(range(1 << min(len(key.tests), 4)))
            else:
                choices[index] = truth
        return replace(one, choices=tuple(choices), possible=possible)

    # ---- one requester

    def _make(self, party: Party, place: Place) -> Requester:
        domains = {name: self._domain(name, party, place) for key in self._keys for name in key.depends_on}
        choices: list[Choice] = []
        possible: dict[int, tuple[int, ...]] = {}
        too_complex: set[int] = set()
        by_party = self._party_choices.setdefault(party, {})
        for index, key in enumerate(self._keys):
            if key.of_place:
                truth, world = self._at(index, key, party, place, domains)
            else:
                if index not in by_party:
                    by_party[index] = self._choice(index, key, party, place, domains)
                truth, world = by_party[index]
            if truth is None:
                too_complex.add(index)
                truth, world = tuple(range(min(1 << len(key.tests), 2))), True
            if world and len(truth) > 1:
                possible[index] = truth
                choices.append(None)
            else:
                choices.append(truth)
        trusted = self._trusted(party, place)
        return Requester(party, place, trusted, tuple(choices), possible, frozenset(too_complex))

    def _at(
        self, index: int, key: Key, party: Party, place: Place, domains: Mapping[str, Domain]
    ) -> tuple[tuple[int, ...] | None, bool]:
        """Return the truth of a key that depends on the place."""
        if place != ANYWHERE:
            return self._choice(index, key, party, place, domains)
        found: set[int] = set()
        for one in self._places:
            if one.point is None:
                there = {name: self._domain(name, party, one) for name in domains}
                truth, world = self._choice(index, key, party, one, there)
                if truth is None or world:
                    return truth, world
                found.update(truth)
        return tuple(sorted(found)), False

    def _domain(self, name: str, party: Party, place: Place) -> Domain:
        if name in PLACE_KEYS:
            known = (name, place, party.service is not None)
            if known not in self._place_domains:
                self._place_domains[known] = self._situation.of_place(name, place, party)
            return self._place_domains[known]
        return self._situation.of_party(name, party)

    def _choice(
        self,
        index: int,
        key: Key,
        party: Party,
        place: Place,
        domains: Mapping[str, Domain],
        more: tuple[ConditionTest, ...] = (),
    ) -> tuple[tuple[int, ...] | None, bool]:
        """Return the achievable truth of a key's tests, and True if the world decides. None: too complex."""
        bound = [domains[name] for name in sorted(key.depends_on)]
        world = any(isinstance(one, Unknown) for one in bound)
        if key.name.startswith("?"):
            if not key.variables:
                return (0, 1), True
            absent = any(isinstance(one, FixedValues) and not one.values for one in bound)
            return ((int(key.negated),) if absent else (0, 1)), world
        domain = self._domain(key.name, party, place)
        memory = (index, more, (domain, *bound))
        if memory not in self._truth:
            self._truth[memory] = self._vectors(key, domain, domains)
        return self._truth[memory], world or isinstance(domain, Unknown)

    def _vectors(self, key: Key, domain: Domain, domains: Mapping[str, Domain]) -> tuple[int, ...] | None:
        tests = [test.bind(domains) for test in key.tests]
        try:
            if key.name == CONNECTION:
                return _bits(one for connection in CONNECTIONS for one in _of_connection(tests, connection))
            return _bits(truth_vectors(tests, domain))
        except TooComplexError:
            return None

    def _trusted(self, party: Party, place: Place) -> str | None:
        return self._trusts_party(party) or self._trusts_place(place)

    def _trusts_party(self, party: Party) -> str | None:
        trust = self._trust
        if party.service is not None:
            source = trust.source(party.source) if party.source else None
            if source is None and party.source and party.source.startswith("o-"):
                source = trust.organization(party.source)
            return source or trust.principal("Service", party.service)
        if party.provider is not None:
            return trust.principal("Federated", party.provider)
        found = trust.canonical(party.canonical) if party.canonical else None
        if found is None and (name := party.arn or party.account):
            found = trust.principal("AWS", name)
        if found is None and party.unique_id:
            found = trust.principal("AWS", party.unique_id)
        if found is None and party.organization:
            found = trust.organization(party.organization)
        return found

    def _trusts_place(self, place: Place) -> str | None:
        trust = self._trust
        if place.network is not None:
            return trust.network(str(place.network))
        for name in (place.vpc_endpoint, place.vpc):
            if name is not None and (entry := trust.place(name)) is not None:
                return entry
        if place.point is None or place.kind is None:
            return None
        return trust.source(place.point) or (
            trust.principal("AWS", place.point_account) if place.point_account else None
        )


def _link(party: Party, principal: Party) -> Party:
    """Return a party known by its canonical ID that is an account or principal which a policy names."""
    return replace(
        party,
        linked=principal,
        account=principal.account,
        arn=principal.arn,
        arn_pattern=principal.arn_pattern,
        unique_id=principal.unique_id or party.unique_id,
    )


def _bits(vectors: Iterable[Sequence[bool]]) -> tuple[int, ...]:
    return tuple(sorted({sum(1 << i for i, true in enumerate(vector) if true) for vector in vectors}))


def _of_connection(tests: Sequence[ConditionTest], connection: Mapping[str, Domain]) -> Iterator[tuple[bool, ...]]:
    """Return the truth of the tests on one connection, whose keys are fixed."""
    truths = ({vector[0] for vector in truth_vectors([test], connection[key_name(test.key)])} for test in tests)
    return product(*truths)


def places_of(names: Names, semantics: Semantics) -> Iterator[Place]:
    """Return each place from which the policies can tell requests apart."""
    yield INTERNET
    yield from (
        Place(AudienceKind.NETWORK, str(network), network=network)
        for network in sorted(names.networks, key=lambda one: (one.version, one.prefixlen))
    )
    if names.keys.isdisjoint(PLACE_KEYS) or semantics is Semantics.CEPH:
        return  # a Ceph gateway has no VPCs: each request has its address
    yield OWN_VPC
    yield from (Place(AudienceKind.VPC, one, private=True, vpc=one) for one in names.vpcs)
    pairs = [*names.vpcs] if len(names.vpcs) * len(names.vpc_endpoints) <= MOST_PAIRS else []
    for one in names.vpc_endpoints:
        for vpc in (None, *pairs):
            yield Place(AudienceKind.VPC_ENDPOINT, one, private=True, vpc=vpc, vpc_endpoint=one)


def _parties(names: Names) -> Iterator[Party]:
    """Return each party that the policies can tell apart, the two strangers first."""
    one_by_one = len(names.services) * len(names.sources) <= MOST_SOURCES and len(names.sources) <= MOST_SOURCES // 10
    yield ANONYMOUS
    yield ANY_ACCOUNT
    yield from (Party(AudienceKind.ORGANIZATION, one, organization=one) for one in names.organizations)
    services = [party for party in names.parties if party.service is not None]
    yield from (party for party in names.parties if party.service is None and party.canonical != ANONYMOUS_OWNER)
    yield from (Party(AudienceKind.ACCOUNT, one, unique_id=one) for one in names.unique_ids)
    if not names.keys.isdisjoint(_SERVICE_NAMES | SOURCE_KEYS):
        services.append(Party(AudienceKind.SERVICE, ANY_SERVICE, service=ANY_SERVICE))
    for party in services:
        yield party if one_by_one else replace(party, free=True)
        if one_by_one:
            for source in names.sources:
                yield replace(party, kind=AudienceKind.SOURCE, name=source, source=source)
