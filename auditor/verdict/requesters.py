"""List the requesters to try on one bucket, with the tests of condition keys that each can make true.

A requester is a party at a place. Two parties stand for the strangers: anyone on the internet, unsigned, and any AWS
account. The other parties are the names in policies and ACLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.access import AudienceKind
from auditor.model.bucket import Semantics
from auditor.model.wildcard import Wildcard
from auditor.verdict.conditions import ConditionTest
from auditor.verdict.distinguished import parties_of
from auditor.verdict.documents import PATHS_OF, Key
from auditor.verdict.domains import ABSENT, Domain, FixedValues, Texts, Unknown
from auditor.verdict.identities import CONDITIONAL, PLACE_KEYS, Situation, ways_with
from auditor.verdict.joined import OWNER_KEYS, bits, known_for, states_of, truth_of
from auditor.verdict.named import Names
from auditor.verdict.places import INTERNET, Place
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, ANY_SERVICE, Party, is_account, of_canonical
from auditor.verdict.search import Needs
from auditor.verdict.steps import MOST_KEY_STEPS, Excess, KeySteps, Steps, TooComplexError
from auditor.verdict.trust import Trust
from auditor.verdict.trusted_party import trusted_party, trusted_place
from auditor.verdict.values import truth_vectors

Choice = tuple[int, ...] | None
"""The sets of a condition key's tests that the requester can make true together, as in search.Options; None if the
world decides."""
States = tuple[tuple[int, ...], tuple[int, ...]]
"""The sets of a key's tests that can be true together: first if an unknown policy variable has no text, then if it has
one. The world decides which of the two holds."""

STEPS_OF_PARTY: Final = 40
"""Steps to prepare a party or a place, besides those for each of its condition keys."""


class Truth(NamedTuple):
    """The tests of a condition key that can be true together for one requester. options: the possible sets of true
    tests. world: True if the world, not the requester, decides which set it is.
    """

    options: tuple[int, ...]
    world: bool = False
    states: States | None = None
    complex: bool = False
    """True if the sets are not known, because the tests are too complex. The options are then two of them."""
    excess: Excess | None = None
    """The number that is too large, if the tests are too complex; None if no number is."""

    @property
    def is_open(self) -> bool:
        """True if the world decides among several sets."""
        return self.states is not None or (self.world and len(self.options) > 1)

    def narrowed(self, tests: int) -> object:
        """Return a value that is the same for truths that do not differ in these tests, as bits."""
        if self.is_open or not self.options:
            return self
        return frozenset(option & tests for option in self.options) if tests else None

    @property
    def possible(self) -> tuple[int, ...]:
        """The sets among which the world decides; with `states`, the numbers of the two states."""
        return (0, 1) if self.states is not None else self.options


_SOME_SERVICE: Final = Party(AudienceKind.SERVICE, ANY_SERVICE, service=ANY_SERVICE)
_ANY: Final = Truth((0, 1), world=True)
"""The truth of a question that nobody can answer."""


class Sender(Struct, frozen=True, eq=False):
    """A party, with the truths of the condition keys that depend on it, by index. trusted: the entry of the setting
    `trusted` that trusts the party.
    """

    party: Party
    trusted: str | None
    truths: Mapping[int, Truth]


class Site(Struct, frozen=True, eq=False):
    """A place, with the truths of the condition keys that depend on it, in the form of Sender. services: True for the
    place of requests that AWS services send.
    """

    place: Place
    trusted: str | None
    truths: Mapping[int, Truth]
    services: bool = False

    @property
    def sender(self) -> Party:
        """A party for which the truths hold: a service, or another one."""
        return _SOME_SERVICE if self.services else ANONYMOUS


class Requester(Struct, frozen=True, eq=False):
    """One party at one place. A set of a key's tests is an int, as in search.Options; the world decides it if the key's
    value is not known (worlds.py).
    """

    party: Party
    place: Place
    choices: tuple[Choice, ...]
    """For each condition key, by index: the sets of its tests that the requester can make true together."""
    states: Mapping[int, States]
    """For each condition key that depends on an unknown policy variable, by index: the sets of tests that the requester
    can make true together without and with the variable."""

    @property
    def stranger(self) -> bool:
        """True for the two parties without a name, at a place that is open to everyone."""
        return self.place.is_open and self.party in (ANONYMOUS, ANY_ACCOUNT)


class SomeKeys(NamedTuple):
    """The condition keys that only some requests have, by index. absent: for each of them, the tests that are true
    without the key. headers: those that the requester sets by a header. only_in: those of some actions only, each with
    the actions whose requests have it. conditional: those of conditional requests.
    """

    absent: Mapping[int, int]
    headers: frozenset[int]
    only_in: Mapping[int, int]
    conditional: frozenset[int]


class Requesters:
    """Makes the requesters of one bucket from the names in its policies. places: the internet comes first. steps:
    counts the work. Raises OutOfStepsError if that takes too many.
    """

    def __init__(
        self, keys: Sequence[Key], situation: Situation, trust: Trust, places: Iterable[Place], steps: Steps
    ) -> None:
        self._keys = keys
        self._situation = situation
        self._trust = trust
        names = situation.names
        linkable = [_in_patterns(one, names) for one in names.parties if one.account and not one.canonical]
        linkable += [Party(AudienceKind.ACCOUNT, one, unique_id=one) for one in names.unique_ids]
        self._principals = linkable
        self._linkable = linkable if situation.semantics is Semantics.AWS else []
        self._truths = truths = _Truths(situation, steps)
        self._split = _KeysByScope.of(dict(enumerate(keys)), situation)
        self._fixed = truths.of_keys(self._split.fixed, ANONYMOUS, INTERNET)
        self._sites = [self._site(place, truths) for place in places]
        self._sites.append(self._site(INTERNET, truths, services=True))
        parties = (_in_patterns(party, names) for party in parties_of(names, steps))
        self._senders = [sender for party in parties for sender in self._senders_of(party, truths)]
        self._canonical = {one.party.canonical for one in self._senders}
        self._grantees: dict[str, tuple[list[Sender], int]] = {}

    def crowd(
        self,
        grantees: Iterable[str],
        holders: Iterable[Party],
        tests: Mapping[int, Sequence[ConditionTest]],
        steps: Steps,
    ) -> Crowd:
        """Return the requesters to try on the objects of one kind. grantees: the owners and grantees of their ACLs, by
        canonical ID or URI. holders: those of credentials of S3 Access Grants. tests: further tests on condition keys,
        by the key's index. The same arguments take the same steps.
        """
        others = [one for grantee in grantees if grantee not in self._canonical for one in self._of(grantee, steps)]
        senders, truths = [*self._senders, *others], _Truths(self._situation, steps, self._truths)
        holding = [self._sender(party, truths) for party in holders]
        steps.spend(len(senders) + len(self._sites))
        keys = {index: replace(key, tests=[*key.tests, *tests[index]]) for index, key in self._named(tests)}
        split = _KeysByScope.of(keys, self._situation)
        sites, of = self._sites, truths.of_keys
        if split.parties:
            senders, holding = (
                [replace(one, truths={**one.truths, **of(split.parties, one.party, INTERNET)}) for one in some]
                for some in (senders, holding)
            )
        if split.places:
            sites = [replace(one, truths={**one.truths, **of(split.places, one.sender, one.place)}) for one in sites]
        fixed = {**self._fixed, **truths.of_keys(split.fixed, ANONYMOUS, INTERNET)}
        return Crowd(len(self._keys), senders, holding, sites, fixed, {**self._split.pairs, **split.pairs}, truths)

    def _named(self, indices: Iterable[int]) -> Iterator[tuple[int, Key]]:
        return ((index, self._keys[index]) for index in indices)

    def _senders_of(self, party: Party, truths: _Truths) -> list[Sender]:
        """Return the party outside the organizations that the policies name, and once more in each of them. A party
        that is known by its canonical ID, or by its S3 Access Grants instance, is also tried as each account and
        principal that the policies name.
        """
        variants = [party]
        if party.canonical or party.unique_id:
            variants += [_link(party, one) for one in self._linkable if party.canonical or not one.unique_id]
        if party.grants is not None:
            own = self._situation.own
            variants += [_vended(party, one) for one in self._principals if _is_vendable(party, one, own)]
        if party.signed and not party.service and not party.organization and party != ANY_ACCOUNT:
            named = self._situation.names.organizations
            truths.steps.spend(len(variants) * len(named))
            variants += [replace(one, organization=name) for one in variants for name in named]
        return [self._sender(one, truths) for one in variants]

    def _sender(self, party: Party, truths: _Truths) -> Sender:
        truths.steps.spend(STEPS_OF_PARTY)
        found = truths.of_keys(self._split.parties, party, INTERNET)
        return Sender(party, trusted_party(self._trust, party), found)

    def _site(self, place: Place, truths: _Truths, *, services: bool = False) -> Site:
        truths.steps.spend(STEPS_OF_PARTY)
        found = truths.of_keys(self._split.places, _SOME_SERVICE if services else ANONYMOUS, place)
        return Site(place, trusted_place(self._trust, place), found, services)

    def _of(self, grantee: str, steps: Steps) -> list[Sender]:
        """Return the senders for an owner or grantee of an ACL that no policy names."""
        if grantee not in self._grantees:
            party = of_canonical(grantee)
            if "://" in grantee:
                party = replace(party, kind=AudienceKind.GROUP, account=None)
            before = steps.spent
            made = self._senders_of(party, _Truths(self._situation, steps, self._truths))
            self._grantees[grantee] = made, steps.spent - before
            return made
        made, spent = self._grantees[grantee]
        steps.spend(spent)
        return made

    # ---- what holds for each requester

    def some_keys(self) -> SomeKeys:
        """Return the condition keys that only some requests have."""
        headers = frozenset(index for index, key in enumerate(self._keys) if key.is_header)
        ways = ((index, ways_with(key.name)) for index, key in enumerate(self._keys))
        only_in = {index: some for index, some in ways if some is not None}
        absent = {
            index: next(iter(bits(truth_vectors([test.bind({}) for test in self._keys[index].tests], ABSENT))))
            for index in headers | only_in.keys()
        }
        conditional = frozenset(index for index, key in enumerate(self._keys) if key.name in CONDITIONAL)
        return SomeKeys(absent, headers, only_in, conditional)

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
        known = {**self._senders[0].truths, **self._sites[0].truths, **self._fixed}
        return any(
            all(option & tests != tests for option in known[key].options)
            for key, tests in dated
            if key in known and not known[key].is_open
        )


class Crowd(Struct, eq=False, dict=True):
    """The requesters to try on the objects of one kind: each sender at each site.

    keys: the number of condition keys. holders: those of credentials of S3 Access Grants. fixed: the truths of those
    keys that are the same for each requester. pairs: the keys whose truth depends on both the party and the place.
    """

    keys: int
    senders: Sequence[Sender]
    holders: Sequence[Sender]
    sites: Sequence[Site]
    fixed: Mapping[int, Truth]
    pairs: Mapping[int, Key]
    _truths: _Truths

    @cached_property
    def _by_place(self) -> Mapping[Place, Site]:
        return {site.place: site for site in self.sites if not site.services}

    @cached_property
    def _open_to_all(self) -> Sequence[Site]:
        return [site for site in self.sites if site.place.point is None and not site.services]

    @property
    def any_account(self) -> Sender:
        """The stranger whose requests are signed."""
        return next(sender for sender in self.senders if sender.party == ANY_ACCOUNT)

    def site_at(self, place: Place) -> Site | None:
        """Return the site of a place that the policies distinguish; None for another place."""
        return self._by_place.get(place)

    def recorded(self, site: Site) -> Site:
        """Return the place by which a requester from this place is recorded: services send from the internet."""
        return self.sites[0] if site.services else site

    def sites_of(self, sender: Sender) -> Sequence[Site]:
        """Return the places from which a party sends requests."""
        if sender.party.service is not None:
            return self.sites[-1:]
        return self.sites[:-1] if sender.party.signed else self._open_to_all

    def requester(self, sender: Sender, site: Site) -> Requester:
        truths = {**self.fixed, **sender.truths, **site.truths, **self.of_pair(sender, site)}
        choices = tuple(None if truths[index].is_open else truths[index].options for index in range(self.keys))
        states = {index: truth.states for index, truth in truths.items() if truth.states is not None}
        return Requester(sender.party, site.place, choices, states)

    def truths(self) -> Iterator[tuple[int, Truth]]:
        """Yield the truths of all requesters, each with the index of its condition key."""
        yield from self.fixed.items()
        # Most parties have the truths of others, which are the same objects.
        each = (one.truths for some in (self.senders, self.holders, self.sites) for one in some)
        alike = {tuple(map(id, truths.values())): truths for truths in each}
        for truths in alike.values():
            yield from truths.items()
        if self.pairs:
            found: dict[int, set[Truth]] = {index: set() for index in self.pairs}
            for sender in (*self.senders, *self.holders):
                for site in self.sites_of(sender):
                    for index, truth in self.of_pair(sender, site).items():
                        found[index].add(truth)
            yield from ((index, truth) for index, some in found.items() for truth in some)

    def of_pair(self, sender: Sender, site: Site) -> Mapping[int, Truth]:
        """Return the truths that depend on both the party and the place."""
        return self._truths.of_keys(self.pairs, sender.party, site.place) if self.pairs else {}


class _KeysByScope(NamedTuple):
    """Condition keys by index, divided: those whose truth is the same for all requesters, for all places of one party,
    for all parties at one place, or for none of these.
    """

    fixed: dict[int, Key]
    parties: dict[int, Key]
    places: dict[int, Key]
    pairs: dict[int, Key]

    @classmethod
    def of(cls, keys: Mapping[int, Key], situation: Situation) -> _KeysByScope:
        found = cls({}, {}, {}, {})
        for index, key in keys.items():
            names = key.depends_on if key.name.startswith("?") else {key.name, *key.depends_on}
            of_party = {name for name in names if name not in PLACE_KEYS and situation.common(name) is None}
            if key.of_place:
                (found.pairs if of_party else found.places)[index] = key
            else:
                (found.parties if of_party else found.fixed)[index] = key
        return found


class _Truths:
    """Finds the truths of condition keys, and remembers them. base: those that were found for the whole bucket."""

    def __init__(self, situation: Situation, steps: Steps, base: _Truths | None = None) -> None:
        self.steps = steps
        self._situation = situation
        self._base = base
        self._known: dict[tuple[object, ...], Truth] = {}
        self._same: dict[Truth, Truth] = {}
        self._domains: dict[tuple[str, Place, bool], Domain] = {}

    def of_keys(self, keys: Mapping[int, Key], party: Party, place: Place) -> dict[int, Truth]:
        """Return the truth of each of the keys for a party at a place."""
        self.steps.spend(3 * len(keys))
        return {index: self._of(index, key, party, place) for index, key in keys.items()}

    def _of(self, index: int, key: Key, party: Party, place: Place) -> Truth:
        domains = {name: self._domain(name, party, place) for name in sorted(key.depends_on)}
        bound = known_for(key, domains)
        if key.name.startswith("?"):
            return self._interned(_of_question(key, bound))
        domain = self._domain(key.name, party, place)
        paths = self._domain(PATHS_OF[key.name], party, place) if key.name in PATHS_OF else ABSENT
        memory = (index, len(key.tests), domain, paths, *bound.values())
        found = self._known.get(memory) or (self._base._known.get(memory) if self._base is not None else None)
        if found is None:
            found = self._known[memory] = self._interned(self._new(key, domain, paths, bound))
        return found

    def _new(self, key: Key, domain: Domain, paths: Domain, bound: Mapping[str, Domain]) -> Truth:
        world = isinstance(domain, Unknown) or any(isinstance(one, Unknown) for one in bound.values())
        steps = KeySteps()
        try:
            options = truth_of(key, [test.bind(bound) for test in key.tests], domain, paths, steps)
            return Truth(options, world, states_of(key, domain, bound, steps) if world else None)
        except TooComplexError as error:
            options = tuple(range(min(1 << len(key.tests), 2)))
            return Truth(options, world=True, complex=True, excess=error.excess)
        finally:
            self.steps.spend(min(steps.spent, MOST_KEY_STEPS))

    def _interned(self, truth: Truth) -> Truth:
        found = None if self._base is None else self._base._same.get(truth)
        return self._same.setdefault(truth, truth) if found is None else found

    def _domain(self, name: str, party: Party, place: Place) -> Domain:
        if name not in PLACE_KEYS:
            return self._situation.of_party(name, party)
        known = (name, place, party.service is not None)
        if known not in self._domains:
            self._domains[known] = self._situation.of_place(name, place, party)
        return self._domains[known]


def _of_question(key: Key, bound: Mapping[str, Domain]) -> Truth:
    """Return the truth of a Key without tests."""
    if not key.variables:
        return _ANY
    if any(isinstance(one, FixedValues) and not one.values for one in bound.values()):
        return Truth((0, 1), world=True) if key.has_default else Truth((int(key.negated),))
    return Truth((0, 1), any(isinstance(one, Unknown) for one in bound.values()))


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
