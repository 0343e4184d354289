"""List the requesters of one bucket: each party at each place from which it can send requests.

Two parties are strangers, without a name in the policies: everyone on the internet, unsigned, and any AWS account. The
other parties are the names in policies and ACLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from auditor.model.access import AudienceKind
from auditor.model.bucket import Semantics
from auditor.verdict.conditions import ConditionTest
from auditor.verdict.distinguished import parties_of, places_of
from auditor.verdict.documents import PATHS_OF, Key
from auditor.verdict.domains import ABSENT, Domain, FixedValues, Texts, Unknown
from auditor.verdict.globs import TooComplexError
from auditor.verdict.identities import PLACE_KEYS, Situation, ways_with
from auditor.verdict.joined import OWNER_KEYS, bits, known_for, states_of, truth_of
from auditor.verdict.named import Names
from auditor.verdict.places import ANYWHERE, INTERNET, Place
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, Party, is_account, of_canonical
from auditor.verdict.search import Needs
from auditor.verdict.trust import Trust
from auditor.verdict.trusted_party import trusting_entry
from auditor.verdict.values import truth_vectors
from auditor.verdict.wildcard import Wildcard

MOST_REQUESTERS: Final = 6000
"""Largest number of requesters. If there are more, a named party is not tried at each place on its own."""

MOST_LINKS: Final = 24
"""Largest number of accounts and principals that are tried, one by one, as the owner of a canonical ID."""

Choice = tuple[int, ...] | None
"""The sets of a condition key's tests that the requester can make true together, as in search.Options; None if the
world decides."""
States = tuple[tuple[int, ...], tuple[int, ...]]
"""The sets of a key's tests that can be true together: first if an unknown policy variable has no text, then if it has
one. The world decides which of the two holds."""


class Truth(NamedTuple):
    """The tests of a condition key that can be true together for one requester. options: the possible sets of true
    tests; None if the conditions are too complex. world: True if the world, not the requester, decides which set it is.
    """

    options: tuple[int, ...] | None
    world: bool = False
    states: States | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Requester:
    """One party at one place. trusted: the entry of the setting `trusted` that makes the party an insider. stranger:
    True for the two parties without a name, at a place that is open to everyone. A set of a key's tests is an int, as
    in search.Options; the world decides it if the key's value is not known (worlds.py).
    """

    party: Party
    place: Place
    trusted: str | None
    choices: tuple[Choice, ...]
    """For each condition key, by index: the sets of its tests that the requester can make true together."""
    possible: Mapping[int, tuple[int, ...]]
    """For each condition key that the world decides, by index: the possible sets of true tests."""
    complex: frozenset[int]
    """The indices of condition keys whose tests have too many combinations. In `possible`, these keys have all
    combinations."""
    states: Mapping[int, States]
    """For each condition key that depends on an unknown policy variable, by index: the sets of tests that the requester
    can make true together without and with the variable."""

    @property
    def stranger(self) -> bool:
        return self.place.is_open and self.party in (ANONYMOUS, ANY_ACCOUNT)


class Requesters:
    """Makes the requesters of one bucket from the names in its policies."""

    def __init__(self, keys: list[Key], situation: Situation, trust: Trust, points: Iterable[Place]) -> None:
        self._keys = keys
        self._situation = situation
        self._trust = trust
        self._truth: dict[tuple[object, ...], Truth] = {}
        names = situation.names
        self._places = [*places_of(names, situation.semantics), *points]
        self._services = [INTERNET]
        linkable = [_in_patterns(one, names) for one in names.parties if one.account and not one.canonical]
        linkable += [Party(AudienceKind.ACCOUNT, one, unique_id=one) for one in names.unique_ids]
        self._named = linkable
        self._linkable = linkable[:MOST_LINKS]
        self._links = situation.semantics is Semantics.AWS
        self._links_all = self._links and len(linkable) <= MOST_LINKS
        self._place_domains: dict[tuple[str, Place, bool], Domain] = {}
        parties = [_in_patterns(one, names) for one in parties_of(names, situation.owners)]
        self.are_cut = len(parties) * len(self._places) * (1 + len(names.organizations)) > MOST_REQUESTERS
        """True if there are more than MOST_REQUESTERS. A named party then counts as being at any place that suits
        it."""
        self._party_choices: dict[Party, dict[int, Truth]] = {}
        self.named = [one for party in parties for one in self.of_party(party)]
        self._canonical: dict[Party, list[Requester]] = {}

    def of_party(self, party: Party) -> list[Requester]:
        """Return the party at each place: outside the organizations that the policies name, and once more in each of
        them.
        """
        if self.are_cut and party.canonical is not None:
            party = replace(party, free=True)
        variants = [party]
        if not party.free and (party.canonical or party.unique_id) and self._links:
            variants = [party if self._links_all else replace(party, free=True)]
            variants += [_link(party, one) for one in self._linkable if party.canonical or not one.unique_id]
        if party.grants is not None and not party.vended:  # with `vended` the party is of any role
            own = self._situation.own
            variants += [_vended(party, one) for one in self._named if _is_vendable(party, one, own)]
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
        """Return the requesters for an owner or grantee of an ACL that no policy names."""
        party = of_canonical(canonical_id)
        if "://" in canonical_id:
            party = replace(party, kind=AudienceKind.GROUP, account=None)
        found = self._canonical.get(party)
        if found is None:
            found = self._canonical[party] = self.of_party(party)
        return found

    def absent(self) -> tuple[dict[int, int], frozenset[int], dict[int, int]]:
        """Return three things about condition keys that only some requests have, each by the key's index: the tests
        that are true without the key; the keys that the requester sets by a header; and, for the keys of some actions
        only, the actions whose requests have them.
        """
        absent: dict[int, int] = {}
        only_in: dict[int, int] = {}
        for index, key in enumerate(self._keys):
            ways = ways_with(key.name)
            if key.is_header or ways is not None:
                absent[index] = next(iter(bits(truth_vectors([test.bind({}) for test in key.tests], ABSENT))))
            if ways is not None:
                only_in[index] = ways
        headers = frozenset(index for index, key in enumerate(self._keys) if key.is_header)
        return absent, headers, only_in

    def owners_truth(self, indices: Iterable[int]) -> dict[int, dict[str | None, tuple[int, ...]]]:
        """Return the tests on the bucket owner's account number that can be true together, by the key's index and by
        that number. The number None stands for every account that the policies do not name.
        """
        accounts = tuple(self._situation.names.accounts)
        numbers: dict[str | None, Domain] = {None: Texts(only=("############",), never=accounts)}
        numbers |= {account: FixedValues((account,)) for account in accounts}
        keys = {index: self._keys[index] for index in indices}
        return {
            index: {
                number: bits(truth_vectors([test.bind({}) for test in key.tests], domain))
                for number, domain in numbers.items()
            }
            for index, key in keys.items()
            if key.name in OWNER_KEYS and not key.depends_on
        }

    def has_ended(self, dated: Needs) -> bool:
        """True if a test on the date is false now. dated: the tests on the date of one statement."""
        choices = self.named[0].choices
        return any(all(option & tests != tests for option in choices[key] or (tests,)) for key, tests in dated)

    def with_tests(self, one: Requester, tests: Mapping[int, Sequence[ConditionTest]]) -> Requester:
        """Return the requester with further tests on some condition keys. tests: by the key's index."""
        choices = dict(enumerate(one.choices))
        possible, states = dict(one.possible), dict(one.states)
        domains = {name: self._domain(name, one.party, one.place) for key in self._keys for name in key.depends_on}
        for index, more in tests.items():
            key = replace(self._keys[index], tests=[*self._keys[index].tests, *more])
            truth = self._choice(-1 - index, key, one.party, one.place, domains, tuple(more))
            if truth.options is None:
                truth = Truth(tuple(range(1 << min(len(key.tests), 4))), world=True)
            _note(index, truth, choices, possible, states)
        return replace(one, choices=tuple(choices.values()), possible=possible, states=states)

    # ---- one requester

    def _make(self, party: Party, place: Place) -> Requester:
        domains = {name: self._domain(name, party, place) for key in self._keys for name in key.depends_on}
        choices: dict[int, Choice] = {}
        possible: dict[int, tuple[int, ...]] = {}
        states: dict[int, States] = {}
        too_complex: set[int] = set()
        by_party = self._party_choices.setdefault(party, {})
        for index, key in enumerate(self._keys):
            if key.of_place:
                truth = self._at(index, key, party, place, domains)
            else:
                if index not in by_party:
                    by_party[index] = self._choice(index, key, party, place, domains)
                truth = by_party[index]
            if truth.options is None:
                too_complex.add(index)
                truth = Truth(tuple(range(min(1 << len(key.tests), 2))), world=True)
            _note(index, truth, choices, possible, states)
        trusted = trusting_entry(self._trust, party, place)
        return Requester(party, place, trusted, tuple(choices.values()), possible, frozenset(too_complex), states)

    def _at(self, index: int, key: Key, party: Party, place: Place, domains: Mapping[str, Domain]) -> Truth:
        """Return the tests that can be true together, for a condition key that depends on the place."""
        if place != ANYWHERE:
            return self._choice(index, key, party, place, domains)
        found: set[int] = set()
        for one in self._places:
            if one.point is None:
                there = {name: self._domain(name, party, one) for name in domains}
                truth = self._choice(index, key, party, one, there)
                if truth.options is None or truth.world:
                    return truth
                found.update(truth.options)
        return Truth(tuple(sorted(found)))

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
    ) -> Truth:
        """Return the tests that can be true together, for any condition key at one place. more: further tests than
        those of the key.
        """
        bound = known_for(key, {name: domains[name] for name in sorted(key.depends_on)})
        world = any(isinstance(one, Unknown) for one in bound.values())
        if key.name.startswith("?"):
            if not key.variables:
                return Truth((0, 1), world=True)
            absent = any(isinstance(one, FixedValues) and not one.values for one in bound.values())
            return Truth((int(key.negated),) if absent else (0, 1), world)
        domain = self._domain(key.name, party, place)
        paths = self._domain(PATHS_OF[key.name], party, place) if key.name in PATHS_OF else ABSENT
        memory = (index, more, (domain, paths, *bound.values()))
        if memory not in self._truth:
            world = world or isinstance(domain, Unknown)
            try:
                truth = truth_of(key, [test.bind(bound) for test in key.tests], domain, paths)
                self._truth[memory] = Truth(truth, world, states_of(key, domain, bound) if world else None)
            except TooComplexError:
                self._truth[memory] = Truth(None, world)
        return self._truth[memory]


def _in_patterns(party: Party, names: Names) -> Party:
    """Return the party with the ARN patterns of the policies that match its ARN, in the field `patterns`."""
    if party.arn is None:
        return party
    patterns = (one.arn_pattern for one in names.parties if one.arn_pattern and one.account == party.account)
    return replace(party, patterns=tuple(text for text in patterns if Wildcard.of(text).matches(party.arn)))


def _link(party: Party, principal: Party) -> Party:
    """Return a party, known by its canonical ID, as an account or principal that a policy names."""
    return replace(
        party,
        linked=principal,
        account=principal.account,
        arn=principal.arn,
        arn_pattern=principal.arn_pattern,
        unique_id=principal.unique_id or party.unique_id,
    )


def _is_vendable(grantee: Party, principal: Party, own: str | None) -> bool:
    """True if S3 Access Grants may give the grantees of an instance the credentials of a principal that a policy
    names. own: number of the bucket owner's account, whose instances without a name are left out.
    """
    inner = principal.arn or principal.arn_pattern or principal.unique_id
    if principal.account is not None and not is_account(principal.account):
        return False  # an origin access identity of CloudFront, which is no role
    if grantee.account is None:
        return principal.account is None or principal.account != own
    return bool(inner) and principal.account in (None, grantee.account)


def _vended(grantee: Party, principal: Party) -> Party:
    """Return the grantees of an S3 Access Grants instance with the credentials of a principal."""
    return replace(_link(grantee, principal), account=principal.account or grantee.account)


def _note(
    index: int,
    truth: Truth,
    choices: dict[int, Choice],
    possible: dict[int, tuple[int, ...]],
    states: dict[int, States],
) -> None:
    """Add the truth of one condition key to three dicts, from which a Requester is made. truth: its options must not be
    None.
    """
    choices[index] = truth.options
    if truth.states is not None:
        choices[index], possible[index], states[index] = None, (0, 1), truth.states
    elif truth.world and len(truth.options or ()) > 1:
        choices[index], possible[index] = None, truth.options or ()
