"""Decide if one requester gets in, in one world, and by which grants and statements.

A way is an action that reaches the object (ways.py). A gate is a second policy that a request has to pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from auditor.model.access import Reason, ReasonCode, Verdict
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS
from auditor.verdict.audience import Inside
from auditor.verdict.documents import Clause, Document
from auditor.verdict.object_facts import SOMEBODY, EncryptionFacts, Source, is_public_group
from auditor.verdict.places import Place
from auditor.verdict.principals import ANY_ACCOUNT, ANY_SERVICE
from auditor.verdict.requesters import Requester, SomeKeys
from auditor.verdict.resources import KeyClass
from auditor.verdict.search import Needs, Search
from auditor.verdict.steps import Steps
from auditor.verdict.ways import BYTES, WAYS, WRITE_ACP
from auditor.verdict.worlds import World

Covered = Sequence[tuple[Clause, Needs]]
"""The statements of a policy that cover an object, each with the tests that it needs for this object."""

EVERY_OBJECT: Final = KeyClass(-1, 0)


class Gate(NamedTuple):
    """A second policy that a request has to pass: the policy of an access point, or of a KMS key.

    way: the one action of a KMS key's policy, as a set of ways; None if the actions are those on the object. cut: True
    if RestrictPublicBuckets of the access point keeps out every account but its own.
    """

    document: Document
    way: int | None = None
    cut: bool = False


class WayIn(NamedTuple):
    """A grant or statement that lets a requester in. reason: its text for reports. conditional: True for a statement
    with a condition.
    """

    reason: Reason
    conditional: bool = False


class Case(NamedTuple):
    """The objects of one kind. covered: the statements that cover them. key: their encryption. ways: the actions that
    reach them. acls: False if no ACL counts. steps: counts the work of judging them.
    """

    covered: Covered
    key: EncryptionFacts
    ways: int
    acls: bool
    steps: Steps


class Result(Struct):
    """The access to an object in one world. potential: some requesters that would get in if nothing hid the object."""

    verdict: Verdict = Verdict.PRIVATE
    inside: dict[Inside, str | None] = field(default_factory=dict)
    """The outsiders that get in, each with the header that the outsider has to send."""
    opens: dict[Reason, None] = field(default_factory=dict)
    potential: list[tuple[Requester, list[WayIn]]] = field(default_factory=list)
    trusted: dict[str, None] = field(default_factory=dict)


class Door:
    """Decides for one bucket which requesters get in. Several methods have the argument `hides`. With False they ignore
    everything that closes the object (Denies, blocks, KMS keys, the payer), and so tell who would get in without it.
    """

    def __init__(
        self, facts: BucketFacts, cut: bool, gates: Mapping[Place, Gate], key_gates: Mapping[str, Gate], keys: SomeKeys
    ) -> None:
        self._facts = facts
        self._aws = facts.semantics is not Semantics.CEPH
        self._cut = cut
        self._gates = gates
        self.cut_points = frozenset(place for place, gate in gates.items() if gate.cut)
        self._key_gates = key_gates
        self.clauses_of_gates = [
            clause for gate in (*gates.values(), *key_gates.values()) for clause in gate.document.clauses
        ]
        self._keys = keys
        self.headers = keys.headers
        self.pays = self._aws and facts.request_payer == "Requester"

    # ---- the questions

    def ways_in(
        self,
        requester: Requester,
        world: World,
        case: Case,
        *,
        hides: bool = True,
        headers: frozenset[int] | None = None,
    ) -> dict[WayIn, int]:
        """Return the grants and statements by which a requester gets in, each with the set of ways; {} if he does not.
        headers: the condition keys whose headers he sends; None for all. Raises OutOfStepsError.
        """
        asked = _Asked(requester, world, hides, self.headers if headers is None else headers)
        if any(choice == () for choice in requester.choices) or not _exists(requester, world):
            return {}  # no such request exists
        place = requester.place
        if place.doubt not in (None, *world.points):
            return {}
        read = place in self._gates or place.doubt is not None
        named = place.point is not None and not place.own_point and not read
        if named and place.point_account == world.own_account:
            return {}  # it is one of the bucket owner's own, which stand for themselves
        if hides and self.pays and not requester.party.signed and requester.party.service is None:
            return {}
        ways = case.ways & ~WRITE_ACP if world.acl.enforced else case.ways
        sources = list(self._sources(asked, case))
        clauses = [(clause, needs) for clause, needs in case.covered if self._concerns(clause, asked)]
        allows = [(clause, needs) for clause, needs in clauses if clause.allows] if self._reached(asked) else []
        denies = [(clause, needs) for clause, needs in clauses if not clause.allows] if hides else []
        if not sources and not allows and not world.allows_all:
            return {}
        found: dict[WayIn, int] = {}
        memory: dict[tuple[object, ...], list[WayIn]] = {}
        for index in range(len(WAYS)):
            way = 1 << index
            if not way & ways or (hides and way & BYTES and not self._may_have_key(asked, case.key)):
                continue
            mine = [source for source in sources if source.ways & way]
            opening = [one for one in allows if one[0].ways & way]
            closing = [one for one in denies if one[0].ways & way]
            everything = world.allows_all and self.policy_reaches(asked.world)
            if not mine and not opening and not everything:
                continue
            present = tuple(bool(way & ways) for ways in self._keys.only_in.values())
            gated = way & BYTES != 0 if case.key.kms is not None else None
            point = way if requester.place.point is not None else None
            key = (*(tuple(map(id, some)) for some in (mine, opening, closing)), present, gated, point)
            if key not in memory:
                memory[key] = self._open(asked, case, way, mine, opening, closing, everything)
            _add(found, memory[key], way)
        return found

    def guesses_key(self, key: EncryptionFacts) -> bool:
        """True if the KMS key's policy was not read, so that nobody knows who may use the key."""
        return key.kms is not None and key.kms not in self._key_gates

    def closing(self, requester: Requester, world: World, case: Case) -> Iterator[Clause]:
        """Yield the Deny statements that may apply to a requester."""
        asked = _Asked(requester, world, True, self.headers)
        for clause, needs in case.covered:
            if not clause.allows and self._concerns(clause, asked):
                left = self._needs(clause, needs, asked, case.ways)
                if left is not None and all(
                    any(option & tests == tests for option in asked.options(key) or ()) for key, tests in left
                ):
                    yield clause

    # ---- one way

    def _open(
        self,
        asked: _Asked,
        case: Case,
        way: int,
        sources: Sequence[Source],
        allows: Covered,
        denies: Covered,
        everything: bool,
    ) -> list[WayIn]:
        closed = [
            needs for clause, all_needs in denies if (needs := self._needs(clause, all_needs, asked, way)) is not None
        ]
        if () in closed:
            return []
        gates: list[list[Needs]] = []
        for gate in self._gates_of(asked, case, way):
            passing, refusing = self._through(gate, asked, way)
            gates.append(passing)
            closed += refusing
        if () in closed or [] in gates:
            return []
        each = ((key, asked.options(key)) for key in range(len(asked.requester.choices)))
        options = {key: choice for key, choice in each if choice is not None and len(choice) > 1}
        found: list[WayIn] = []
        if (sources or everything) and Search(options, case.steps).opens(([()], *gates), closed):
            found += [WayIn(_reason(source)) for source in sources]
            found += [WayIn(_unread(self._facts))] if everything else []
        for clause, all_needs in allows:
            needs = self._needs(clause, all_needs, asked, way)
            if needs is not None and Search(options, case.steps).opens(([needs], *gates), closed):
                found.append(WayIn(_allow(clause), clause.conditional))
        return found

    def _through(self, gate: Gate, asked: _Asked, way: int) -> tuple[list[Needs], list[Needs]]:
        """Return the Allows and the Denies of a gate's policy for the requester, each as the tests that it needs."""
        passing: list[Needs] = []
        refusing: list[Needs] = []
        if gate.cut and asked.hides:
            return passing, refusing
        for clause, all_needs in gate.document.clauses_of(EVERY_OBJECT if gate.way else gate.document.class_of("?")):
            if not clause.ways & (gate.way or way) or self._is_for(clause, asked.requester) is False:
                continue
            needs = self._needs(clause, all_needs, asked, way)
            if needs is not None:
                (passing if clause.allows else refusing).append(needs)
        return passing, refusing if asked.hides else []

    def _needs(self, clause: Clause, needs: Needs, asked: _Asked, way: int) -> Needs | None:
        """Return those tests of a statement that the requester can make true or false. Return None if the statement
        cannot apply to him.
        """
        if self._is_for(clause, asked.requester) is None:
            needs = (*needs, (clause.who, 1))
        left: list[tuple[int, int]] = []
        for key, tests in needs:
            choice = asked.options(key)
            missing = not way & self._keys.only_in.get(key, way)
            missing = missing or (asked.world.bare_reads and not clause.allows and key in self._keys.conditional)
            if missing or (key in self.headers and key not in asked.headers):
                fixed = self._keys.absent[key]
            elif choice is None:
                if key in asked.world.keys:
                    fixed = asked.world.keys[key]
                else:
                    fixed = -1 if asked.world.high == clause.allows else 0
            elif len(choice) == 1:
                fixed = choice[0]
            else:
                left.append((key, tests))
                continue
            if fixed & tests != tests:
                return None
        return tuple(left)

    # ---- the parts of an answer

    def _is_for(self, clause: Clause, requester: Requester) -> bool | None:
        return clause.principals.has(requester.party, allows=clause.allows)

    def _concerns(self, clause: Clause, asked: _Asked) -> bool:
        party = asked.requester.party
        if self._is_for(clause, asked.requester) is False:
            return False
        # Any service for any source is a stranger only to statements that ask for services.
        return party.service != ANY_SERVICE or party.source is not None or clause.for_services or not clause.allows

    def _sources(self, asked: _Asked, case: Case) -> Iterator[Source]:
        """Yield the parts of the ACL, or the S3 Access Grant, that give the requester access."""
        party = asked.requester.party
        if party.vended:
            yield Source("", party.vended, "", assumed=Reason(ReasonCode.ACCESS_GRANT))
            return
        if not case.acls or (party.service == ANY_SERVICE and party.source is None):
            return
        for source in asked.world.acl.sources:
            if asked.hides and self._facts.ignores_public_acls and is_public_group(source):
                continue
            everyone = source.grantee == ALL_USERS or (
                source.grantee == AUTHENTICATED_USERS and (party.signed or party.service is not None)
            )
            if everyone or source.grantee == party.canonical:
                yield source

    def policy_reaches(self, world: World) -> bool:
        """True if an Allow of the bucket policy applies to the object in this world: the owner of the object is the
        bucket's owner.
        """
        owner, foreign = world.acl.owner, world.acl.foreign
        return not self._aws or (not foreign if owner == SOMEBODY else owner == world.own_canonical)

    def _reached(self, asked: _Asked) -> bool:
        if asked.requester.party.vended or not self.policy_reaches(asked.world):
            return False
        if not (asked.hides and self._cut) or asked.requester.party.service is not None:
            return True
        return not self._aws and not asked.requester.stranger

    def _may_have_key(self, asked: _Asked, key: EncryptionFacts) -> bool:
        if key.customer:
            return False
        if key.kms is None:
            return True
        if not asked.requester.party.signed and asked.requester.party.service is None:
            return False
        party = asked.requester.party
        return key.kms in self._key_gates or (party != ANY_ACCOUNT and party.provider is None)

    def _gates_of(self, asked: _Asked, case: Case, way: int) -> Iterator[Gate]:
        if asked.requester.party.vended:
            return  # a role of the bucket owner's account passes by its own policies
        if asked.hides and way & BYTES and case.key.kms is not None and case.key.kms in self._key_gates:
            yield self._key_gates[case.key.kms]
        if (gate := self._gates.get(asked.requester.place)) is not None:
            yield gate


class _Asked(NamedTuple):
    """One question to Door: the requester, the world, and the arguments `hides` and `headers` of Door.ways_in()."""

    requester: Requester
    world: World
    hides: bool
    headers: frozenset[int]

    def options(self, key: int) -> Sequence[int] | None:
        """Return the sets of a condition key's tests that can be true together for the requester; None if the world
        decides.
        """
        choice = self.requester.choices[key]
        if choice is not None or key not in self.requester.states or key not in self.world.keys:
            return choice
        return self.requester.states[key][min(self.world.keys[key], 1)]


def _add(found: dict[WayIn, int], ways_in: Sequence[WayIn], way: int) -> None:
    for one in ways_in:
        found[one] = found.get(one, 0) | way


def _exists(requester: Requester, world: World) -> bool:
    """False for the unknown party of an ACL, if the world's ACL names no such party."""
    acl = world.acl
    named = acl.owner == SOMEBODY or any(source.grantee == SOMEBODY for source in acl.sources)
    return named or requester.party.canonical != SOMEBODY


def _reason(source: Source) -> Reason:
    if source.assumed is not None:
        return source.assumed
    return Reason(ReasonCode.OBJECT_OWNER if source.owner else ReasonCode.ACL_GRANT, source.cause)


def _allow(clause: Clause) -> Reason:
    until = f" until {clause.until}" if clause.until else ""
    return Reason(ReasonCode.POLICY_ALLOW, f"{clause.name}{until}")


def _unread(facts: BucketFacts) -> Reason:
    return Reason(ReasonCode.POLICY_UNREAD, getattr(facts.policy, "code", None))
