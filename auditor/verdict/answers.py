"""Ask for each requester if it gets in, in one world, and collect the unknown facts on which the access may depend.

Requesters that are alike get one answer together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from msgspec import Struct

from auditor.model.access import Reason, ReasonCode
from auditor.model.object import PUBLIC_GROUPS, Skipped, Unread
from auditor.model.policy import is_bucket_tag
from auditor.verdict.compiled import CompiledBucket
from auditor.verdict.entry import Case, Covered, Door, WayIn
from auditor.verdict.identities import CONDITIONAL
from auditor.verdict.object_facts import SOMEBODY, AclView, EncryptionFacts
from auditor.verdict.places import Doubt, private_place
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, ANY_SERVICE, PUBLIC_PROVIDERS, Party, names_of
from auditor.verdict.requesters import Crowd, Sender, Site, Truth
from auditor.verdict.ways import BYTES
from auditor.verdict.worlds import Unknowns, World

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


def unknowns_of(
    bucket: CompiledBucket, acls: Sequence[AclView], crowd: Crowd, kinds: Kinds, cause: Reason
) -> tuple[Unknowns, dict[Any, Reason], dict[int, Reason]]:
    """Return the facts that are not known; the reason to give for each; and the condition keys that are too complex,
    each with its reason. cause: the reason for an ACL that is not known.
    """
    keys, too_complex = _keys(bucket, crowd, kinds)
    doubts = dict.fromkeys(site.place.doubt for site in crowd.sites if site.place.doubt is not None)
    unclear = [sender.party for sender in crowd.senders if _is_unclear(sender.party, bucket.own_account)]
    conditional = _conditional(bucket, kinds)
    unknowns = Unknowns(
        acls,
        (False, True) if bucket.unread else (False,),
        [None, *bucket.names.accounts] if bucket.own_account is None else (bucket.own_account,),
        _canonicals(bucket, acls, crowd),
        [some for size in range(len(doubts) + 1) for some in combinations(doubts, size)],
        (False, True) if unclear else (False,),
        (False, True) if conditional else (False,),
        keys,
        bucket.requesters.owners_truth(keys) if bucket.own_account is None else {},
    )
    points = Reason(ReasonCode.ACCESS_POINTS_UNREAD, _code(bucket.facts.access_points))
    if Doubt.OWN_POINTS not in doubts:
        points = Reason(ReasonCode.KEY_UNKNOWN, "s3:DataAccessPointArn")
    names: dict[Any, Reason] = {
        "allows_all": Reason(ReasonCode.POLICY_UNREAD, _code(bucket.facts.policy)),
        "acl": cause,
        "own_canonical": Reason(ReasonCode.OWNER_UNKNOWN),
        "own_account": Reason(ReasonCode.OWNER_UNKNOWN),
        "points": points,
        "unclear": Reason(ReasonCode.KEY_UNKNOWN, _unclear_name(unclear)),
        "bare_reads": Reason(ReasonCode.KEY_UNKNOWN, conditional),
        **{key: _unknown_key(bucket, key) for key in keys},
    }
    return unknowns, names, too_complex


def _keys(bucket: CompiledBucket, crowd: Crowd, kinds: Kinds) -> tuple[dict[int, tuple[int, ...]], dict[int, Reason]]:
    """Return the possible sets of true tests of each condition key that the world decides; and the keys that are too
    complex, each with the reason.
    """
    relevant = {key for _, needs in kinds.clauses for key, _ in needs}
    relevant |= {kinds.clauses[place][0].who for sender in crowd.senders for place in kinds.unclear(sender)}
    keys: dict[int, tuple[int, ...]] = {}
    too_complex: dict[int, Reason] = {}
    for index, truth in crowd.truths():
        if index in relevant and truth.is_open:
            keys[index] = tuple(sorted({*keys.get(index, ()), *truth.possible}))
        if index in relevant and truth.complex:
            too_complex[index] = _unknown_key(bucket, index) if truth.excess is None else truth.excess.reason
    return keys, too_complex


def _conditional(bucket: CompiledBucket, kinds: Kinds) -> str | None:
    """Return the first condition key of conditional requests that a Deny tests; None if there is none."""
    keys = (bucket.keys[key] for clause, needs in kinds.clauses if not clause.allows for key, _ in needs)
    return next((key.spelled for key in keys if key.name in CONDITIONAL), None)


def _canonicals(bucket: CompiledBucket, acls: Sequence[AclView], crowd: Crowd) -> Sequence[str | None]:
    """Return the canonical IDs that the bucket's owner may have. None stands for every ID that the policies and ACLs do
    not name.
    """
    if bucket.own_id is not None:
        return (bucket.own_id,)
    named = [
        one.party.canonical for one in crowd.senders if one.party.canonical not in (None, SOMEBODY) and not one.trusted
    ]
    named += [view.owner for view in acls if view.owner != SOMEBODY]
    return [None, *dict.fromkeys(one for one in named if one and one not in PUBLIC_GROUPS and "://" not in one)]


def _is_unclear(party: Party, own_account: str | None) -> bool:
    """True if nobody knows if the party belongs to the bucket's owner: a principal with a unique ID, the users of an
    identity provider, or the grantees of the owner's own S3 Access Grants instance.
    """
    if party.grants is not None and party.account is not None:
        return own_account in (None, party.account)
    return party.unique_id is not None or party.provider not in (None, *PUBLIC_PROVIDERS)


def _unclear_name(unclear: Iterable[Party]) -> str | None:
    of_grants = {False: "aws:userid", True: "s3:AccessGrantsInstanceArn"}
    return next((party.provider or of_grants[party.grants is not None] for party in unclear), None)


def _unknown_key(bucket: CompiledBucket, index: int) -> Reason:
    """Return the reason for a condition key whose value is not known."""
    key = bucket.keys[index]
    if not any(is_bucket_tag(name) for name in (key.name, *key.depends_on)):
        return Reason(ReasonCode.KEY_UNKNOWN, key.spelled)
    unread = next((one for one in (bucket.facts.abac, bucket.facts.tags) if isinstance(one, Unread)), None)
    return Reason(ReasonCode.BUCKET_TAGS_UNREAD, unread.code if unread else "skipped")


def _code(fact: object) -> str | None:
    if isinstance(fact, Unread):
        return fact.code
    return "skipped" if isinstance(fact, Skipped) else "malformed" if isinstance(fact, str) else None
