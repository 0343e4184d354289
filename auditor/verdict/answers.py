"""Ask for each requester if it gets in, in one world. Requesters that are alike get one answer together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from auditor.verdict.entry import Case, Covered, Door, WayIn
from auditor.verdict.object_facts import EncryptionFacts
from auditor.verdict.places import private_place
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, ANY_SERVICE, names_of
from auditor.verdict.requesters import Crowd, Sender, Site, Truth
from auditor.verdict.ways import BYTES
from auditor.verdict.worlds import World

STEPS_OF_QUESTION: Final = 20
"""Steps for one question to the door, besides those for each statement."""


class PartyKind(Struct, frozen=True, eq=False):
    """The parties that the statements and ACLs of one case do not tell apart. covered: the statements on the objects
    that may be for these parties. relevant: the tests that such a statement needs, as bits, by the condition key's
    index.
    """

    covered: Covered
    relevant: Mapping[int, int]


class Kinds:
    """Divides the parties of one case into kinds. grantees: the owners and grantees of the ACLs. clauses: the
    statements that cover the objects, and those of the gates, each with the tests that it needs.
    """

    def __init__(self, door: Door, crowd: Crowd, case: Case, grantees: frozenset[str]) -> None:
        self._case = case
        self._grantees = grantees
        self.clauses = [*case.covered, *((clause, clause.needs) for clause in door.clauses_of_gates)]
        self._crowd = crowd
        self._in_vpc: dict[Site, bool] = {}
        self._tests: dict[int, int] = {}
        for _, needs in self.clauses:
            for key, tests in needs:
                self._tests[key] = self._tests.get(key, 0) | tests
        self._kinds: dict[tuple[object, ...], PartyKind] = {}
        self._known: dict[Sender, PartyKind] = {}
        self._standing: dict[Sender, tuple[bool | None, ...]] = {}
        self._covered: dict[tuple[bool | None, ...], tuple[Covered, Mapping[int, int]]] = {}

    def unclear(self, sender: Sender) -> Iterator[int]:
        """Yield the places of the statements of which it is not known if they are for the party."""
        standing = self._standing_of(sender)
        if None in standing:
            yield from (place for place, has in enumerate(standing) if has is None)

    def of(self, sender: Sender) -> PartyKind:
        """Return the kind of a party."""
        found = self._known.get(sender)
        if found is None:
            party, standing = sender.party, self._standing_of(sender)
            if standing not in self._covered:
                self._covered[standing] = self._of_standing(standing)
            covered, relevant = self._covered[standing]
            key = (
                standing,
                party.signed,
                party.service is None,
                party.service == ANY_SERVICE and party.source is None,
                party if party in (ANONYMOUS, ANY_ACCOUNT) else None,
                party.provider is None,
                party.vended,
                party.canonical if party.canonical in self._grantees else None,
                narrowed(sender.truths, relevant),
            )
            found = self._known[sender] = self._kinds.setdefault(key, PartyKind(covered, relevant))
            self._case.steps.spend(6)
        return found

    def is_in_vpc(self, site: Site) -> bool:
        """True for a place with a VPC endpoint that no statement tells from the other endpoints of its VPC."""
        place = site.place
        if place.behind is not None and (behind := self._crowd.site_at(place.behind)) is not None:
            return self.is_in_vpc(behind)
        if place.vpc_endpoint is None or place.point is not None or not (place.vpc or place.vpc_arn):
            return False
        if site not in self._in_vpc:
            owner = (place.endpoint_account, place.endpoint_organization)
            whole = self._crowd.site_at(private_place(place.vpc, place.vpc_arn, None, *owner))
            self._in_vpc[site] = whole is not None and (
                narrowed(site.truths, self._tests) == narrowed(whole.truths, self._tests)
            )
        return self._in_vpc[site]

    def _standing_of(self, sender: Sender) -> tuple[bool | None, ...]:
        """Return for each statement if it is for the party; None if that is not known."""
        found = self._standing.get(sender)
        if found is None:
            self._case.steps.spend(2 + len(self.clauses))
            party, names = sender.party, names_of(sender.party)
            each = (one.principals.has(party, allows=one.allows, names=names) for one, _ in self.clauses)
            found = self._standing[sender] = tuple(each)
        return found

    def _of_standing(self, standing: Sequence[bool | None]) -> tuple[Covered, Mapping[int, int]]:
        concerned = [one for one, has in zip(self.clauses, standing, strict=True) if has is not False]
        relevant: dict[int, int] = {}
        for clause, needs in concerned:
            for key, tests in (*needs, (clause.who, 1)):
                relevant[key] = relevant.get(key, 0) | tests
        covered = zip(self._case.covered, standing, strict=False)
        return [one for one, has in covered if has is not False], relevant


class Answers:
    """The answers of the door to the requesters of one crowd, in one world."""

    def __init__(self, door: Door, crowd: Crowd, world: World, case: Case, kinds: Kinds) -> None:
        self._door = door
        self._crowd = crowd
        self._world = world
        self._case = case
        self._kinds = kinds
        self._known: dict[tuple[object, ...], dict[WayIn, int]] = {}
        self._sites: dict[tuple[object, ...], list[tuple[Site, list[WayIn]]]] = {}

    def ways_in(
        self, sender: Sender, site: Site, *, hides: bool = True, headers: frozenset[int] | None = None
    ) -> list[WayIn]:
        """Return the ways by which a party at a place gets in, as Door.ways_in() does.

        A party may have a KMS key whose policy was not read only where something lets the party read the object. A
        grant or statement that would let in any AWS account as well does not count.
        """
        found = self._ask(sender, site, self._case.key, hides=hides, headers=headers)
        if not hides or not self._door.guesses_key(self._case.key) or not any(BYTES & ways for ways in found.values()):
            return list(found)
        stranger = self._crowd.any_account
        public = self._ask(stranger, self._crowd.recorded(site), EncryptionFacts(), hides=True, headers=None)
        return [one for one, ways in found.items() if ways & ~(BYTES & public.get(one, 0))]

    def _ask(
        self, sender: Sender, site: Site, encrypted: EncryptionFacts, *, hides: bool, headers: frozenset[int] | None
    ) -> dict[WayIn, int]:
        kind, place = self._kinds.of(sender), site.place
        key = (
            kind,
            narrowed(site.truths, kind.relevant),
            narrowed(self._crowd.of_pair(sender, site), kind.relevant),
            place.is_open,
            None if place.point is None else place,
            encrypted,
            hides,
            headers,
        )
        found = self._known.get(key)
        if found is None:
            self._case.steps.spend(STEPS_OF_QUESTION + 2 * len(kind.covered))
            case = self._case._replace(covered=kind.covered, key=encrypted)
            requester = self._crowd.requester(sender, site)
            found = self._door.ways_in(requester, self._world, case, hides=hides, headers=headers)
            self._known[key] = found
        return found

    def sites(self, sender: Sender, *, hides: bool = True) -> Sequence[tuple[Site, list[WayIn]]]:
        """Return the places from which a party gets in, each with the ways. A place of the bucket owner's account is
        left out: whoever sends from there is an insider.
        """
        key = (self._kinds.of(sender), hides, sender if self._crowd.pairs else None)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = list(self._each(sender, hides))
        return found

    def _each(self, sender: Sender, hides: bool) -> Iterator[tuple[Site, list[WayIn]]]:
        sites = self._crowd.sites_of(sender)
        self._case.steps.spend(3 * len(sites))
        for site in sites:
            if self._world.own_account in site.place.accounts or self._kinds.is_in_vpc(site):
                continue
            if ways_in := self.ways_in(sender, site, hides=hides):
                yield site, ways_in


def narrowed(truths: Mapping[int, Truth], relevant: Mapping[int, int]) -> tuple[object, ...]:
    """Return a value that is the same for truths that do not differ in the relevant tests. relevant: these tests, as
    bits, by the condition key's index.
    """
    return tuple(truth.narrowed(relevant.get(index, 0)) for index, truth in truths.items())
