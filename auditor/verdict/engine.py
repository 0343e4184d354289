"""Find the access to an object: for each requester, in each possible world, ask if the requester gets in.

A world is one possible completion of the facts that are not known (worlds.py). A requester is a party at a place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, Semantics
from auditor.model.object import PUBLIC_GROUPS
from auditor.verdict.audience import MOST_AUDIENCES, Inside, adds_nothing, audience_of, bounded_to, named
from auditor.verdict.compiled import CompiledBucket
from auditor.verdict.entry import Case, WayIn
from auditor.verdict.grants import GrantedParty
from auditor.verdict.identities import PLACE_KEYS
from auditor.verdict.named import POINT_KEYS
from auditor.verdict.object_facts import AclView, EncryptionFacts
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, PUBLIC_PROVIDERS, Party
from auditor.verdict.reasons import MOST_REASONS, Explainer
from auditor.verdict.requesters import Requester
from auditor.verdict.resources import KeyClass
from auditor.verdict.search import TooManyStepsError
from auditor.verdict.trust import Trust
from auditor.verdict.unknowns import too_complex_of, unknowns_of
from auditor.verdict.ways import ALL_WAYS, VERSION_WAYS, WRITE_ACP
from auditor.verdict.worlds import World

MOST_POTENTIAL: Final = 4
"""Largest number of requesters that Result.potential holds, for the reasons."""

Handed = tuple[Requester, Sequence[GrantedParty]]
"""The holder of credentials of S3 Access Grants at one place, and the grantees to which they are handed out."""

_KINDS: Final = {kind: place for place, kind in enumerate(AudienceKind)}


@dataclass(slots=True)
class Result:
    """The access to an object in one world. potential: some requesters that would get in if nothing hid the object."""

    verdict: Verdict = Verdict.PRIVATE
    inside: dict[Inside, str | None] = field(default_factory=dict)
    """The outsiders that get in, each with the header that the outsider has to send."""
    opens: dict[Reason, None] = field(default_factory=dict)
    potential: list[tuple[Requester, list[WayIn]]] = field(default_factory=list)
    trusted: dict[str, None] = field(default_factory=dict)


class AccessEngine:
    """Finds the access to the objects of one bucket. It compiles the policies once."""

    def __init__(self, facts: BucketFacts, trust: Trust, now: datetime | None) -> None:
        self._bucket = CompiledBucket(facts, trust, now)
        self._door = self._bucket.door
        self._explainer = Explainer(self._bucket)
        self._enforced = facts.ownership == BUCKET_OWNER_ENFORCED
        self._holders: dict[Party, list[Requester]] = {}
        self._not_public = facts.semantics is Semantics.AWS and facts.policy_is_public is False

    def class_of(self, key: str) -> KeyClass:
        """Return the class of an object's key: the statements and the S3 Access Grants that cover it. Keys of one class
        have the same access.
        """
        covered = self._bucket.document.class_of(key)
        scopes = self._bucket.grants.scopes_of(key)
        return covered._replace(scopes=scopes) if scopes else covered

    def access(
        self, covered: KeyClass, acls: Sequence[AclView], key: EncryptionFacts, *, latest: bool, cause: Reason
    ) -> ObjectAccess:
        """Return the access to the objects whose keys belong to one class. acls: the ACLs that these objects may have.
        cause: the reason to give if the verdict depends on which of the ACLs it is.
        """
        ways = ALL_WAYS if latest else VERSION_WAYS
        if self._enforced:
            ways &= ~WRITE_ACP  # S3 refuses to write an ACL there
        needed, tests = self._bucket.folders(covered)
        covering = self._bucket.document.clauses_of(covered, needed)
        clauses = [(clause, needs) for clause, needs in covering if clause.ways & ways]
        case = Case(clauses, key, ways, not self._enforced)
        granted = self._bucket.grants.of(covered.scopes)
        requesters = self._requesters(acls)
        holders = [one for party in granted for one in self._holders_of(party)]
        if tests:
            requesters = [self._bucket.requesters.with_tests(one, tests) for one in requesters]
            holders = [self._bucket.requesters.with_tests(one, tests) for one in holders]
        handed = [(one, granted[one.party]) for one in holders]
        unknowns, names, too_complex = unknowns_of(self._bucket, case, acls, [*requesters, *holders], cause)
        worlds, bounded = unknowns.worlds(too_complex)
        try:
            results = [self._result(requesters, handed, world, case) for world in worlds]
        except TooManyStepsError:
            return ObjectAccess(Verdict.UNKNOWN, (), (too_complex_of(case),))
        verdicts = [result.verdict for result in results]
        verdict = _together(verdicts)
        if verdict is Verdict.UNKNOWN:
            reasons = unknowns.causes(worlds, verdicts, names)
            if bounded and not reasons:
                reasons = [names["high"]]
            audience, _ = bounded_to(_certain(results), MOST_AUDIENCES)
            return ObjectAccess(verdict, audience, tuple(reasons[:MOST_REASONS]))
        points_are_cut = self._bucket.points_are_cut and self._asks_for(POINT_KEYS, case)
        places_are_cut = self._bucket.places_are_cut and self._asks_for(PLACE_KEYS - POINT_KEYS, case)
        if verdict is not Verdict.EXPOSED and (points_are_cut or places_are_cut):
            return ObjectAccess(Verdict.UNKNOWN, (), (too_complex_of(case),))
        reasons = self._explainer.reasons(verdict, results, worlds, case)[:MOST_REASONS]
        audience, is_cut = bounded_to(_audience(verdict, results), MOST_AUDIENCES)
        if is_cut:
            reasons.append(too_complex_of(case))
        return ObjectAccess(verdict, audience, tuple(reasons))

    def _asks_for(self, names: frozenset[str], case: Case) -> bool:
        """True if a condition of a statement on the object tests one of the condition keys."""
        return any(self._bucket.keys[key].name in names for _, needs in case.covered for key, _ in needs)

    def _requesters(self, acls: Sequence[AclView]) -> list[Requester]:
        """Return the requesters that the policies name, and the owners and grantees of the ACLs."""
        requesters = self._bucket.requesters
        known = {self._bucket.own_id, *(one.party.canonical for one in requesters.named), *PUBLIC_GROUPS}
        grantees = dict.fromkeys(source.grantee for view in acls for source in view.sources)
        others = [one for grantee in grantees if grantee not in known for one in requesters.of_grantee(grantee)]
        return [*requesters.named, *others]

    def _holders_of(self, party: Party) -> list[Requester]:
        """Return the holder of credentials of S3 Access Grants at each place."""
        if party not in self._holders:
            self._holders[party] = self._bucket.requesters.of_party(party)
        return self._holders[party]

    # ---- one world

    def _result(self, requesters: Sequence[Requester], handed: Sequence[Handed], world: World, case: Case) -> Result:
        found = Result()
        for one in requesters:
            if self._is_insider(one, world):
                continue
            if found.inside and _is_named(one) and adds_nothing(found.inside, one.party, one.place):
                continue
            ways_in = self._door.ways_in(one, world, case)
            if ways_in and one.trusted is not None:
                found.trusted[one.trusted] = None
            elif ways_in:
                self._enter(found, one, world, case, ways_in)
            elif one.trusted is None and not found.inside and len(found.potential) < MOST_POTENTIAL:
                hidden = self._door.ways_in(one, world, case, hides=False)
                if hidden:
                    found.potential.append((one, hidden))
        for one, grantees in handed:
            self._hand_out(found, one, grantees, world, case)
        if found.verdict is Verdict.PRIVATE and found.potential:
            found.verdict = Verdict.MASKED
        return found

    def _hand_out(
        self, found: Result, one: Requester, grantees: Sequence[GrantedParty], world: World, case: Case
    ) -> None:
        """Record in `found` the grantees that get in, or would get in, by the credentials that `one` holds."""
        if world.own_account in one.place.accounts:
            return
        gets_in = bool(self._door.ways_in(one, world, case))
        if found.verdict is Verdict.EXPOSED or not (gets_in or self._door.ways_in(one, world, case, hides=False)):
            return
        header = self._header(one, world, case) if gets_in else None
        for party, reason, trusted in grantees:
            entry = trusted or one.trusted
            if gets_in and entry is not None:
                found.trusted[entry] = None
            elif gets_in:
                found.verdict = Verdict.SHARED
                found.opens[reason] = None
                if not adds_nothing(found.inside, party, one.place):
                    found.inside[party, one.place] = header
            elif entry is None and not found.inside and len(found.potential) < MOST_POTENTIAL:
                found.potential.append((one, [WayIn(reason)]))

    def _enter(self, found: Result, one: Requester, world: World, case: Case, ways_in: Sequence[WayIn]) -> None:
        """Record in `found` that a requester gets in."""
        # S3's answer is about the bucket policy; that of an access point may let everyone in all the same.
        limited = self._not_public and not one.place.own_point and all(way.conditional for way in ways_in)
        # An identity provider may let everyone sign up.
        provider = one.party.provider is not None and one.place.is_open
        exposed = not (limited and one.party.provider in (None, *PUBLIC_PROVIDERS)) and (one.stranger or provider)
        if found.verdict is Verdict.EXPOSED and not exposed:
            return
        if exposed and found.verdict is not Verdict.EXPOSED:
            found.inside.clear()
            found.opens.clear()
        found.verdict = Verdict.EXPOSED if exposed else Verdict.SHARED
        found.inside[one.party, one.place] = self._header(one, world, case)
        found.opens.update(dict.fromkeys(way.reason for way in ways_in))

    def _header(self, one: Requester, world: World, case: Case) -> str | None:
        """Return the header that the requester has to send to get in; None if no header is needed."""
        keys = self._bucket.keys
        headers = sorted(self._door.headers, key=lambda key: keys[key].header or "")
        if not headers or self._door.ways_in(one, world, case, headers=frozenset()):
            return None
        for key in headers:
            if self._door.ways_in(one, world, case, headers=frozenset({key})):
                return keys[key].header
        return " and ".join(keys[key].header for key in headers)

    def _is_insider(self, one: Requester, world: World) -> bool:
        party = one.party
        if world.own_account in one.place.accounts:
            return True
        if party.canonical is not None and party.canonical == world.own_canonical:
            return True
        if party.grants is not None and party.account is not None and party.account == world.own_account:
            return self._bucket.grants.read or not world.unclear  # each grant is tried on its own
        if party.provider is not None:
            return not world.unclear and party.provider not in PUBLIC_PROVIDERS
        if party.service is None and party.account is not None and party.account == world.own_account:
            return True
        return party.unique_id is not None and not world.unclear


def _is_named(one: Requester) -> bool:
    """True if access for the requester makes an object shared, not exposed."""
    return one.party not in (ANONYMOUS, ANY_ACCOUNT) and one.party.provider is None


# ---- all worlds together


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the one verdict of all worlds: unknown if the worlds differ. If they differ only in masked and private, it
    is masked.
    """
    different = set(verdicts)
    if len(different) == 1:
        return verdicts[0]
    return Verdict.MASKED if different == {Verdict.MASKED, Verdict.PRIVATE} else Verdict.UNKNOWN


def _audience(verdict: Verdict, results: Sequence[Result]) -> tuple[Audience, ...]:
    """Return the audiences of an object. An exposed object has one audience: the narrowest world decides, and there the
    widest audience that gets in.
    """
    if verdict is Verdict.EXPOSED:
        each = [min(_named(result), key=_width) for result in results]
        return (max(each, key=_width),)
    headers: dict[Inside, str | None] = {}
    for result in results:
        for one, header in result.inside.items():
            headers[one] = min(headers.get(one, header), header, key=lambda text: (len(text or ""), text or ""))
    return named(headers)


def _certain(results: Sequence[Result]) -> tuple[Audience, ...]:
    """Return the audiences that get in in every world, so that the unknown facts do not matter."""
    first = results[0].inside
    return named({one: first[one] for one in first if all(one in result.inside for result in results)})


def _named(result: Result) -> Iterator[Audience]:
    return (audience_of(*one, header) for one, header in result.inside.items())


def _width(audience: Audience) -> tuple[int, int, str]:
    """Return a key that sorts the widest audience first: one that needs no header, then one, then several."""
    through = audience.through or ""
    return _KINDS[audience.kind], len(through), through
