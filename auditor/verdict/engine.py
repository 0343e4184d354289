"""Find the access to an object: for each requester, in each possible world, ask if the requester gets in; and name the
grants, statements and settings that make the verdict.

A world is one possible completion of the facts that are not known (worlds.py). A requester is a party at a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, Semantics
from auditor.model.object import PUBLIC_GROUPS, Skipped, Unread
from auditor.model.policy import Policy
from auditor.verdict.answers import Answers, Kinds, unknowns_of
from auditor.verdict.audience import Containment, Inside, audience_of
from auditor.verdict.compiled import CompiledBucket, level_of
from auditor.verdict.conditions import ConditionTest
from auditor.verdict.entry import Case, Result, WayIn
from auditor.verdict.object_facts import AclView, EncryptionFacts, Granted, GrantedParty
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, PUBLIC_PROVIDERS, Party
from auditor.verdict.requesters import Requester, Sender, Site
from auditor.verdict.resources import KeyClass
from auditor.verdict.steps import Excess, OutOfStepsError, Steps
from auditor.verdict.trust import Trust
from auditor.verdict.ways import ALL_WAYS, VERSION_WAYS, WRITE_ACP
from auditor.verdict.worlds import World

MOST_REASONS: Final = 10
"""Largest number of reasons of one object."""

_ASSUMED: Final = (ReasonCode.ACL_UNREAD, ReasonCode.POLICY_UNREAD, ReasonCode.OWNER_UNKNOWN)
"""Reasons that are given for access by an assumption, because a fact was not read. They are left out if the object is
open without the assumption."""

MOST_POTENTIAL: Final = 4
"""Largest number of requesters that Result.potential holds, for the reasons."""

STEPS_OF_ENTRY: Final = 5
"""Steps to record that one requester gets in."""

SiteWays = tuple[Site, list[WayIn]]
"""A place from which a party gets in, with the ways."""

_KINDS: Final = {kind: place for place, kind in enumerate(AudienceKind)}


def reasons_of(
    bucket: CompiledBucket, verdict: Verdict, results: Sequence[Result], worlds: Sequence[World], case: Case
) -> list[Reason]:
    """Return the reasons of a verdict other than unknown. The reasons that open the object come first."""
    found: dict[Reason, None] = {}
    for result in results:
        found.update(dict.fromkeys(one for one in result.opens if one.code not in _ASSUMED))
    if verdict is Verdict.MASKED:
        for result, world in zip(results, worlds, strict=True):
            found.update(dict.fromkeys(_hiding(bucket, result, world, case)))
    elif verdict is not Verdict.EXPOSED:
        found.update(dict.fromkeys(_closing(bucket, worlds, case)))
    if verdict in (Verdict.PRIVATE, Verdict.MASKED):
        trusted = dict.fromkeys(entry for result in results for entry in result.trusted)
        found.update(dict.fromkeys(Reason(ReasonCode.TRUSTED, entry) for entry in trusted))
    return list(found)


def _hiding(bucket: CompiledBucket, result: Result, world: World, case: Case) -> Iterator[Reason]:
    """Yield the grants and statements that would open the object, then the settings that hide it."""
    for _, ways_in in result.potential:
        yield from (way.reason for way in ways_in)
    for one, ways_in in result.potential:
        for clause in bucket.door.closing(one, world, case):
            yield Reason(ReasonCode.POLICY_DENY, clause.name)
        codes = {way.reason.code for way in ways_in}
        if bucket.facts.ignores_public_acls and ReasonCode.ACL_GRANT in codes:
            yield Reason(ReasonCode.IGNORE_PUBLIC_ACLS, level_of(bucket.facts, "ignore_public_acls"))
        if bucket.cut is not None and ReasonCode.POLICY_ALLOW in codes:
            yield bucket.cut
        if one.place in bucket.door.cut_points:
            yield Reason(ReasonCode.RESTRICT_PUBLIC_BUCKETS, f"access point {one.place.point}")
        if case.key.customer:
            yield Reason(ReasonCode.CUSTOMER_KEY)
        if case.key.kms is not None:
            yield _key(bucket, case.key.kms)
        if bucket.door.pays and not one.party.signed:
            yield Reason(ReasonCode.REQUESTER_PAYS)


def _key(bucket: CompiledBucket, key: str) -> Reason:
    policies = bucket.facts.key_policies
    unread = not isinstance(policies, Skipped) and isinstance(policies.get(key), Unread)
    return Reason(ReasonCode.KMS_KEY_UNREAD if unread else ReasonCode.KMS_KEY, key or None)


def _closing(bucket: CompiledBucket, worlds: Sequence[World], case: Case) -> Iterator[Reason]:
    """Yield the reasons that close the object in every case."""
    if bucket.facts.ownership == BUCKET_OWNER_ENFORCED:
        yield Reason(ReasonCode.ACLS_DISABLED)
    foreign = bucket.facts.semantics is not Semantics.CEPH
    foreign = foreign and not any(bucket.door.policy_reaches(world) for world in worlds)
    for clause, _ in case.covered:
        if clause.allows and foreign:
            yield Reason(ReasonCode.NOT_BUCKET_OWNED, clause.name)
        if clause.allows and bucket.requesters.has_ended(clause.dated):
            yield Reason(ReasonCode.ENDED, clause.name)


class AccessEngine:
    """Finds the access to the objects of one bucket. It compiles the policies once. policy: the one to judge by, in
    place of the bucket's own.
    """

    def __init__(self, facts: BucketFacts, trust: Trust, now: datetime | None, policy: Policy | None = None) -> None:
        self._enforced = facts.ownership == BUCKET_OWNER_ENFORCED
        self._holders: dict[Party, list[Requester]] = {}
        self._not_public = facts.semantics is Semantics.AWS and facts.policy_is_public is False
        self._bucket: CompiledBucket | None = None
        self._excess: Excess | None = None
        self.spent = 0
        """The largest number of steps that the objects of one kind took so far."""
        try:
            self._bucket = CompiledBucket(facts, trust, now, policy)
            self.spent = self._bucket.steps
        except OutOfStepsError as error:
            self._excess, self.spent = error.excess, error.excess.number

    def class_of(self, key: str) -> KeyClass:
        """Return the class of an object's key: the statements and the S3 Access Grants that cover it. Keys of one class
        have the same access.
        """
        if self._bucket is None:
            return KeyClass(0, 0)
        covered = self._bucket.document.class_of(key)
        scopes = self._bucket.grants.scopes_of(key)
        return covered._replace(scopes=scopes) if scopes else covered

    def access(
        self, covered: KeyClass, acls: Sequence[AclView], key: EncryptionFacts, *, latest: bool, cause: Reason
    ) -> ObjectAccess:
        """Return the access to the objects whose keys belong to one class, with all audiences. acls: the ACLs that
        these objects may have. cause: the reason to give if the verdict depends on which of the ACLs it is.

        The access is unknown, and the reason says the number that is too large, if the policies are too large to judge
        exactly.
        """
        if self._bucket is None:
            assert self._excess is not None
            return ObjectAccess(Verdict.UNKNOWN, (), (self._excess.reason,))
        ways = ALL_WAYS if latest else VERSION_WAYS
        if self._enforced:
            ways &= ~WRITE_ACP  # S3 refuses to write an ACL there
        steps = Steps(self._bucket.steps)
        needed, tests = self._bucket.folders(covered)
        covering = self._bucket.document.clauses_of(covered, needed)
        clauses = [(clause, needs) for clause, needs in covering if clause.ways & ways]
        case = Case(clauses, key, ways, not self._enforced, steps)
        try:
            granted = self._bucket.grants.of(covered.scopes)
            return _Judging(self._bucket, case, acls, granted, tests, self._not_public).access(cause)
        except OutOfStepsError as error:
            return ObjectAccess(Verdict.UNKNOWN, (), (error.excess.reason,))
        finally:
            self.spent = max(self.spent, steps.spent)


class _Judging:
    """Judges the objects of one kind. granted: the grantees of S3 Access Grants. tests: the tests that replace patterns
    of Resource, by the condition key's index. not_public: True if S3 says that the bucket policy is not public. Raises
    OutOfStepsError.
    """

    def __init__(
        self,
        bucket: CompiledBucket,
        case: Case,
        acls: Sequence[AclView],
        granted: Granted,
        tests: Mapping[int, Sequence[ConditionTest]],
        not_public: bool,
    ) -> None:
        self._bucket = bucket
        self._door = bucket.door
        self._case = case
        self._acls = acls
        self._not_public = not_public
        grantees = dict.fromkeys(source.grantee for view in acls for source in view.sources)
        others = [one for one in grantees if one not in (bucket.own_id, *PUBLIC_GROUPS)]
        self._crowd = bucket.requesters.crowd(others, granted, tests, case.steps)
        self._kinds = Kinds(self._door, self._crowd, case, frozenset(grantees))
        self._handed = [(holder, granted[holder.party]) for holder in self._crowd.holders]
        parties = (one.party for some in granted.values() for one in some)
        self._containment = Containment(self._crowd, parties, case.steps)

    def access(self, cause: Reason) -> ObjectAccess:
        unknowns, names, too_complex = unknowns_of(self._bucket, self._acls, self._crowd, self._kinds, cause)
        worlds, excess = unknowns.worlds(too_complex)
        results = [self._result(world) for world in worlds]
        verdicts = [result.verdict for result in results]
        verdict = _together(verdicts)
        limits = dict.fromkeys([*too_complex.values(), *([] if excess is None else [excess.reason])])
        if verdict is Verdict.SHARED and not _alike(worlds, results):
            verdict = Verdict.UNKNOWN
        if verdict is Verdict.UNKNOWN:
            reasons = list(dict.fromkeys([*unknowns.causes(worlds, verdicts, names), *limits]))
            return ObjectAccess(verdict, self._containment.named(_certain(results)), tuple(reasons[:MOST_REASONS]))
        reasons = reasons_of(self._bucket, verdict, results, worlds, self._case)[:MOST_REASONS]
        if verdict is Verdict.EXPOSED:
            return ObjectAccess(verdict, (_exposing(results),), tuple(reasons))
        return ObjectAccess(verdict, self._containment.named(_of_any(results)), tuple(reasons))

    # ---- one world

    def _result(self, world: World) -> Result:
        found = Result()
        answers = Answers(self._door, self._crowd, world, self._case, self._kinds)
        self._case.steps.spend(len(self._crowd.senders))
        for sender in self._crowd.senders:
            if found.verdict is Verdict.EXPOSED and _is_named(sender.party):
                continue
            if not self._is_insider(sender.party, world):
                self._try(found, sender, answers)
        for holder, granted in self._handed:
            self._hand_out(found, holder, granted, answers)
        if found.verdict is Verdict.PRIVATE and found.potential:
            found.verdict = Verdict.MASKED
        return found

    def _hand_out(self, found: Result, holder: Sender, grantees: Sequence[GrantedParty], answers: Answers) -> None:
        """Record in `found` the grantees that get in, or would get in, by the credentials of one holder."""
        if found.verdict is Verdict.EXPOSED:
            return
        opened = answers.sites(holder)
        for site, _ in opened:
            self._let_in(found, holder, site, grantees, answers)
        behind = answers.sites(holder, hides=False)
        hidden = [(site, [WayIn(reason)]) for site, _ in behind for _, reason, trusted in grantees if trusted is None]
        if not found.inside:
            self._note_hidden(found, holder, opened, hidden)

    def _let_in(
        self, found: Result, holder: Sender, site: Site, grantees: Sequence[GrantedParty], answers: Answers
    ) -> None:
        """Record in `found` the grantees of a holder that gets in from one place."""
        header = self._header(holder, site, answers)
        self._case.steps.spend(STEPS_OF_ENTRY * len(grantees))
        for party, reason, trusted in grantees:
            entry = trusted or site.trusted
            if entry is not None:
                found.trusted[entry] = None
                continue
            found.verdict = Verdict.SHARED
            found.opens[reason] = None
            sender = self._containment.sender(party)
            if not self._containment.adds_nothing(found.inside, sender, site):
                found.inside[sender, site] = header

    def _try(self, found: Result, sender: Sender, answers: Answers) -> None:
        """Record in `found` the places from which a party gets in, or would get in if nothing hid the object."""
        if found.inside and _is_named(sender.party) and self._containment.is_everywhere(found.inside, sender):
            return
        opened = answers.sites(sender)
        for site, ways_in in opened:
            self._case.steps.spend(STEPS_OF_ENTRY)
            entry = sender.trusted or site.trusted
            if entry is not None:
                found.trusted[entry] = None
            elif not (found.inside and _is_named(sender.party) and self._adds_nothing(found, sender, site)):
                self._enter(found, sender, site, answers, ways_in)
                if _is_named(sender.party) and self._containment.is_everywhere(found.inside, sender):
                    return
        if found.inside or sender.trusted is not None or len(found.potential) >= MOST_POTENTIAL:
            return
        self._note_hidden(found, sender, opened, answers.sites(sender, hides=False))

    def _note_hidden(
        self, found: Result, sender: Sender, opened: Iterable[SiteWays], hidden: Iterable[SiteWays]
    ) -> None:
        """Record in `found` the first of the places from which a party would get in, if nothing hid the object. opened:
        those from which it gets in. hidden: these and the others, each with the ways.
        """
        known = {site for site, _ in opened}
        for site, ways_in in hidden:
            if site not in known and site.trusted is None and len(found.potential) < MOST_POTENTIAL:
                found.potential.append((self._crowd.requester(sender, site), ways_in))

    def _adds_nothing(self, found: Result, sender: Sender, site: Site) -> bool:
        return self._containment.adds_nothing(found.inside, sender, self._crowd.recorded(site))

    def _enter(self, found: Result, sender: Sender, site: Site, answers: Answers, ways_in: Sequence[WayIn]) -> None:
        """Record in `found` that a requester gets in."""
        party, place = sender.party, site.place
        # S3's answer is about the bucket policy; that of an access point may let everyone in all the same.
        limited = self._not_public and not place.own_point and all(way.conditional for way in ways_in)
        # An identity provider may let everyone sign up.
        provider = party.provider is not None and place.is_open
        stranger = party in (ANONYMOUS, ANY_ACCOUNT) and place.is_open
        exposed = not (limited and party.provider in (None, *PUBLIC_PROVIDERS)) and (stranger or provider)
        if found.verdict is Verdict.EXPOSED and not exposed:
            return
        if exposed and found.verdict is not Verdict.EXPOSED:
            found.inside.clear()
            found.opens.clear()
        found.verdict = Verdict.EXPOSED if exposed else Verdict.SHARED
        found.inside[sender, self._crowd.recorded(site)] = self._header(sender, site, answers)
        found.opens.update(dict.fromkeys(way.reason for way in ways_in))

    def _header(self, sender: Sender, site: Site, answers: Answers) -> str | None:
        """Return the header that the requester has to send to get in; None if no header is needed."""
        keys = self._bucket.keys
        headers = sorted(self._door.headers, key=lambda key: keys[key].header or "")
        if not headers or answers.ways_in(sender, site, headers=frozenset()):
            return None
        for key in headers:
            if answers.ways_in(sender, site, headers=frozenset({key})):
                return keys[key].header
        return " and ".join(keys[key].header for key in headers)

    def _is_insider(self, party: Party, world: World) -> bool:
        if party.canonical is not None and party.canonical == world.own_canonical:
            return True
        if party.grants is not None and party.account is not None and party.account == world.own_account:
            return self._bucket.grants.read or not world.unclear  # each grant is tried on its own
        if party.provider is not None:
            return not world.unclear and party.provider not in PUBLIC_PROVIDERS
        if party.service is None and party.account is not None and party.account == world.own_account:
            return True
        return party.unique_id is not None and not world.unclear


def _is_named(party: Party) -> bool:
    """True if access for the party makes an object shared, not exposed."""
    return party not in (ANONYMOUS, ANY_ACCOUNT) and party.provider is None


# ---- all worlds together


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the one verdict of all worlds: unknown if the worlds differ. If they differ only in masked and private, it
    is masked.
    """
    different = set(verdicts)
    if len(different) == 1:
        return verdicts[0]
    return Verdict.MASKED if different == {Verdict.MASKED, Verdict.PRIVATE} else Verdict.UNKNOWN


def _alike(worlds: Sequence[World], results: Sequence[Result]) -> bool:
    """True if the same requesters get in whether the conditions that were not tried hold or not."""
    found: dict[Any, dict[Inside, str | None]] = {}
    for world, result in zip(worlds, results, strict=True):
        facts = (*world[: World._fields.index("keys")], tuple(world.keys.items()))
        if found.setdefault(facts, result.inside) != result.inside:
            return False
    return True


def _exposing(results: Sequence[Result]) -> Audience:
    """Return the audience of an exposed object: the narrowest world decides, and there the widest audience that gets
    in.
    """
    return max((min(_named(result), key=_width) for result in results), key=_width)


def _of_any(results: Sequence[Result]) -> dict[Inside, str | None]:
    """Return the requesters that get in in any world, each with its header."""
    headers: dict[Inside, str | None] = {}
    for result in results:
        for one, header in result.inside.items():
            headers[one] = min(headers.get(one, header), header, key=lambda text: (len(text or ""), text or ""))
    return headers


def _certain(results: Sequence[Result]) -> dict[Inside, str | None]:
    """Return the requesters that get in in every world, so that the unknown facts do not matter."""
    first = results[0].inside
    return {one: first[one] for one in first if all(one in result.inside for result in results)}


def _named(result: Result) -> Iterator[Audience]:
    return (audience_of(sender.party, site.place, header) for (sender, site), header in result.inside.items())


def _width(audience: Audience) -> tuple[int, int, str]:
    """Return a key that sorts the widest audience first: one that needs no header, then one, then several."""
    through = audience.through or ""
    return _KINDS[audience.kind], len(through), through
