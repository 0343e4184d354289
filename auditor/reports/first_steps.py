"""Find the fewest changes of a bucket that close most of its exposed objects, each with its effect.

The open objects of a run are counted by kind, with one example of each kind: a change affects all objects of a kind as
it affects the example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from auditor.model.access import ObjectAccess, ReasonCode, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, PublicAccessBlock, Semantics
from auditor.model.json_codec import fact_from_json, fact_to_json, typed
from auditor.model.object import Acl, Grant, Head, ObjectRef, Skipped, Unread
from auditor.model.rollup import FirstStep, Group, GroupKind
from auditor.text import counted, shorten, visible
from auditor.verdict.change import OF_ACLS, OF_POLICIES, BucketChange, ChangedObjects
from auditor.verdict.judge import Kind, VerdictJudge
from auditor.verdict.policy_text import without_statements

KINDS: Final = 256
"""Largest number of kinds that are kept; further ones are only counted."""
OPEN: Final = frozenset({Verdict.EXPOSED, Verdict.SHARED})
STEPS: Final = 4
"""Largest number of changes that are named."""
REMOVAL: Final = "remove the statement"
"""The first words of a change that removes a statement of the bucket policy."""
MOST_BROKEN: Final = 5
"""Largest number of audiences that lose access and are named."""
_STATEMENTS: Final = 6
"""Largest number of policy statements whose removal is tried."""
_TRIED: Final = 32
"""Largest number of kinds of objects on which changes are tried. For a long policy the number is smaller, because the
judge takes long."""
_LEAST_TRIED: Final = 4
_SHORT_POLICY: Final = 2048
"""Number of characters of a policy up to which _TRIED kinds are tried."""
_PERMISSIONS: Final = {
    "GetObjectAcl": ("s3:GetObjectAcl", "s3:GetObjectVersionAcl"),
    "HeadObject": ("s3:GetObject", "s3:GetObjectVersion"),
}
"""By call, what it takes: of current objects, and of versions."""


class OpenObject(Struct, frozen=True):
    """An open object, reduced to the facts that decide its access. excepted: True if an exception covers it."""

    key: str
    owner: str | None
    is_latest: bool
    acl: Acl | Unread | Skipped
    head: Head | Unread | Skipped
    excepted: bool

    @classmethod
    def of(
        cls, ref: ObjectRef, acl: Acl | Unread | Skipped, head: Head | Unread | Skipped, *, excepted: bool
    ) -> OpenObject:
        if isinstance(head, Head):
            head = Head(
                etag="",
                content_length=0,
                server_side_encryption=head.server_side_encryption,
                sse_kms_key_id=head.sse_kms_key_id,
                sse_customer_algorithm=head.sse_customer_algorithm,
            )
        return cls(ref.key, ref.owner, ref.is_latest, acl, head, excepted)

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.key, "", 0, "", owner=self.owner, is_latest=self.is_latest)


class JudgedFor(Struct, frozen=True):
    """The facts by which the objects of a run are judged, before and after a hypothetical change. Each field is that of
    VerdictJudge.
    """

    facts: BucketFacts
    trusted: frozenset[str]
    versions: bool
    now: datetime | None

    def judge(self, facts: BucketFacts | None = None, trusted: frozenset[str] = frozenset()) -> VerdictJudge:
        """Return a judge by these facts, or by others in the place of the bucket's."""
        return VerdictJudge(facts or self.facts, self.trusted | trusted, self.versions, self.now)


class OpenKinds:
    """Counts open objects by kind: the first KINDS kinds with an example each, the objects of the others together."""

    def __init__(self, judged_for: JudgedFor, saved: SavedKinds | None = None) -> None:
        self.judged_for = judged_for
        self._judge = judged_for.judge()
        self._found: dict[tuple[Kind, bool], list[Any]] = {}
        self._others: Counter[tuple[str, bool]] = Counter()
        if saved is not None:
            self.include(saved)

    def include(self, saved: SavedKinds) -> None:
        """Add the counts of a checkpoint."""
        for opened, number in saved.kinds:
            self.add(self._judge.access(opened.ref, opened.acl, opened.head).verdict, opened, number)
        for verdict, excepted, number in saved.others:
            self._others[verdict, excepted] += number

    def add(self, verdict: Verdict, opened: OpenObject, number: int = 1) -> None:
        """Count an object that is exposed or shared."""
        kind = (self._judge.kind(opened.ref, opened.acl, opened.head), opened.excepted)
        found = self._found.get(kind)
        if found is not None:
            found[1] += number
        elif len(self._found) < KINDS:
            self._found[kind] = [opened, number]
        else:
            self._others[verdict.value, opened.excepted] += number

    def examples(self) -> Sequence[tuple[OpenObject, int]]:
        """Return the example of each kind with the number of its objects, the largest numbers first."""
        return sorted(((opened, number) for opened, number in self._found.values()), key=lambda one: -one[1])

    def others(self, verdict: Verdict, *, excepted: bool = False) -> int:
        """Return the number of objects of this verdict whose kind is not kept."""
        return self._others[verdict.value, excepted]

    def saved(self) -> dict[str, Any]:
        """Return the counts as JSON values, for a checkpoint."""
        kinds = [[fact_to_json(opened), number] for opened, number in self._found.values()]
        return {"kinds": kinds, "others": [[*name, number] for name, number in self._others.items()]}


class SavedKinds(Struct, frozen=True):
    """The counts that OpenKinds.saved() wrote, read back."""

    kinds: tuple[tuple[OpenObject, int], ...] = ()
    others: tuple[tuple[str, bool, int], ...] = ()

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SavedKinds:
        """Raises JsonError for anything else."""
        found = typed(_KindsSaved, saved)
        return cls(tuple((fact_from_json(OpenObject, one), number) for one, number in found.kinds), found.others)


class _KindsSaved(Struct, frozen=True):
    kinds: tuple[tuple[Any, Annotated[int, Meta(gt=0)]], ...]
    others: tuple[tuple[Literal["exposed", "shared"], bool, int], ...]


class _Change(Struct, frozen=True):
    """A change that may close objects. flags: those of `auditor what-if`; None if it has none for the change.

    removed: name of the policy statement that the change removes. private: True if it gives the exposed objects
    private ACLs.
    """

    words: str
    flags: str | None = None
    acls_off: bool = False
    block: bool = False
    switches: frozenset[str] = frozenset()
    removed: str | None = None
    private: bool = False


class _JudgedKind(Struct, frozen=True):
    """A kind of objects. today: its access before all changes."""

    example: OpenObject
    number: int
    today: ObjectAccess


class _Effect(Struct, frozen=True):
    """The access of each kind after some changes."""

    accesses: tuple[ObjectAccess, ...]
    left: int
    """Number of exposed objects that no exception covers."""
    broken: int
    """Number of shared or excepted objects that an audience can no longer reach."""


def first_steps(kinds: OpenKinds, groups: Iterable[Group]) -> tuple[tuple[FirstStep, ...], int]:
    """Return the changes to make first, and the number of exposed objects whose kind was not looked at.

    groups: the run's groups, for the undecided objects. The changes are found one after the other. Each next change is
    the one with the most gain: the objects that it closes, less the shared or intended objects that it also closes. The
    search ends if no change has a gain.
    """
    found = _Search(kinds)
    steps = [*found.steps(), *_deciding(groups, kinds.judged_for.versions, found)]
    return tuple(steps[: STEPS + 1]), found.unseen


class _Search:
    """Looks for the changes that close most. unseen: number of exposed objects of kinds that are not tried."""

    def __init__(self, kinds: OpenKinds) -> None:
        self._for = kinds.judged_for
        judge = self._for.judge()
        every = list(kinds.examples())
        policy = self._for.facts.policy
        room = max(_LEAST_TRIED, _TRIED * _SHORT_POLICY // max(len(policy) if isinstance(policy, str) else 0, 1))
        judged = (
            _JudgedKind(one, number, judge.access(one.ref, one.acl, one.head))
            for one, number in every[: min(room, _TRIED)]
        )
        self._kinds = list(judged)
        rest = every[len(self._kinds) :]
        self.unseen = kinds.others(Verdict.EXPOSED) + sum(
            number
            for one, number in rest
            if not one.excepted and judge.access(one.ref, one.acl, one.head).verdict is Verdict.EXPOSED
        )
        self._before = self._effect(())
        self.exposed = self._before.left + self.unseen
        self.closed = 0

    def steps(self) -> Iterator[FirstStep]:
        """Yield the changes, the one that closes most first."""
        made: tuple[_Change, ...] = ()
        before = self._before
        while len(made) < STEPS and before.left:
            best = self._best(made, self._settings(), before) or self._best(made, self._private(before), before)
            if best is None:
                return
            change, after = best
            made = (*made, change)
            self.closed = self._before.left - after.left
            yield self._step(made, before, after)
            before = after

    def _step(self, made: Sequence[_Change], before: _Effect, after: _Effect) -> FirstStep:
        lost: dict[str, None] = {}
        intended = 0
        for kind, was, now in zip(self._kinds, before.accesses, after.accesses, strict=True):
            if kind.today.verdict is Verdict.SHARED:
                lost.update(dict.fromkeys(_lost(was, now)))
            elif kind.example.excepted and was.verdict is Verdict.EXPOSED and now.verdict is not Verdict.EXPOSED:
                intended += kind.number
        flags = [one.flags for one in made]
        how = " ".join(flag for flag in flags if flag) if all(flags) else None
        return FirstStep(
            change=made[-1].words,
            closes=self.closed,
            of=self.exposed,
            breaks=tuple(lost)[:MOST_BROKEN],
            intended=intended,
            how=how,
        )

    def _best(
        self, made: Sequence[_Change], candidates: Iterable[_Change], before: _Effect
    ) -> tuple[_Change, _Effect] | None:
        """Return the change with the most gain, among the candidates that are not made yet; None if none has a gain.
        The gain is the number of objects that the change closes, less those that it takes from others. Of equal
        changes, the first is returned.
        """
        found: tuple[_Change, _Effect] | None = None
        most = 0
        for one in candidates:
            if one in made:
                continue
            after = self._effect((*made, one))
            gain = before.left - after.left - (after.broken - before.broken)
            if gain > most:
                found, most = (one, after), gain
        return found

    def _settings(self) -> Iterator[_Change]:
        """Yield the changes of the bucket's settings that may close something."""
        facts = self._for.facts
        owned = facts.ownership == BUCKET_OWNER_ENFORCED
        if not owned and not _on(facts, OF_ACLS):
            words = "turn on BlockPublicAcls and IgnorePublicAcls on the bucket"
            yield _Change(words, "--ignore-public-acls", switches=OF_ACLS)
        yield from self._of_policy()
        if facts.policy and not _on(facts, OF_POLICIES) and facts.semantics is not Semantics.CEPH:
            words = "turn on BlockPublicPolicy and RestrictPublicBuckets on the bucket"
            yield _Change(words, "--restrict-public-policy", switches=OF_POLICIES)
        if not _on(facts, OF_ACLS | OF_POLICIES):
            words = "turn on all four switches of the bucket's public access block"
            yield _Change(words, "--block-public-access", block=True)
        if not owned and facts.semantics is Semantics.AWS:
            yield _Change("turn ACLs off (BucketOwnerEnforced)", "--acls-off", acls_off=True)

    def _of_policy(self) -> Iterator[_Change]:
        if not isinstance(self._for.facts.policy, str):
            return
        numbers: Counter[str] = Counter()
        for kind in self._kinds:
            if kind.today.verdict is Verdict.EXPOSED and not kind.example.excepted:
                for reason in kind.today.reasons:
                    if reason.code is ReasonCode.POLICY_ALLOW and reason.cause:
                        numbers[reason.cause] += kind.number
        for name in sorted(numbers, key=lambda name: (-numbers[name], name))[:_STATEMENTS]:
            yield _Change(f"{REMOVAL} {shorten(visible(name), 60)} from the bucket policy", removed=name)

    def _private(self, before: _Effect) -> Iterator[_Change]:
        """Yield the change of the ACLs of exposed objects, one by one. before: the access before the change."""
        opened = {ReasonCode.ACL_GRANT, ReasonCode.OBJECT_OWNER}
        number = sum(
            kind.number
            for kind, access in zip(self._kinds, before.accesses, strict=True)
            if access.verdict is Verdict.EXPOSED
            and not kind.example.excepted
            and any(reason.code in opened for reason in access.reasons)
        )
        if number:
            words = f"give {counted(number, 'exposed object')} a private ACL, with an S3 Batch Operations job"
            yield _Change(words, private=True)

    def _effect(self, changes: Sequence[_Change]) -> _Effect:
        facts, accesses = self._for.facts, []
        policy = facts.policy if isinstance(facts.policy, str) else None
        removed = [one.removed for one in changes if one.removed is not None]
        change = BucketChange(
            acls=False if any(one.acls_off for one in changes) else None,
            policy=without_statements(policy, removed) if policy and removed else None,
            block=True if any(one.block for one in changes) else None,
            switches=frozenset().union(*(one.switches for one in changes)),
        )
        judge, changed = self._for.judge(change.facts(facts)), ChangedObjects(facts, change)
        left = broken = 0
        for kind in self._kinds:
            example, exposed = kind.example, kind.today.verdict is Verdict.EXPOSED
            ref, acl = changed.object(example.ref, example.acl)
            if exposed and not example.excepted and isinstance(acl, Acl) and any(one.private for one in changes):
                acl = Acl(acl.owner, (Grant(acl.owner, "FULL_CONTROL"),))
            access = judge.access(ref, acl, example.head)
            accesses.append(access)
            if exposed and not example.excepted:
                left += kind.number if access.verdict in (Verdict.EXPOSED, Verdict.UNKNOWN) else 0
            elif exposed or _lost(kind.today, access):
                broken += kind.number if not exposed or access.verdict is not Verdict.EXPOSED else 0
        return _Effect(tuple(accesses), left, broken)


def _lost(was: ObjectAccess, now: ObjectAccess) -> list[str]:
    """Return the audiences of `was` that do not get in any more, in the form of Audience.text."""
    if now.verdict is Verdict.EXPOSED:
        return []
    left = {one.text for one in now.audience}
    return [one.text for one in was.audience if one.text not in left]


def _on(facts: BucketFacts, switches: Iterable[str]) -> bool:
    """True if the switches are on, of the bucket or of its account."""
    levels = [facts.public_access_block, facts.account_public_access_block]
    read = [level for level in levels if isinstance(level, PublicAccessBlock)]
    return all(any(getattr(level, switch) for level in read) for switch in switches)


def _deciding(groups: Iterable[Group], versions: bool, found: _Search) -> Iterator[FirstStep]:
    """Yield the permission that the auditor lacks for most undecided objects, if it lacks one."""
    numbers: Counter[str] = Counter()
    for group in groups:
        if group.kind is GroupKind.UNDECIDED and group.audience and group.audience.endswith(" AccessDenied"):
            numbers[group.audience] += group.count
    for audience, number in sorted(numbers.items(), key=lambda item: (-item[1], item[0]))[:1]:
        names = _PERMISSIONS.get(audience.partition(" ")[0], ())[: 1 + versions]
        if names:
            change = f"let the auditor call {' and '.join(names)}"
            yield FirstStep(change=change, closes=found.closed, of=found.exposed, decides=number)
