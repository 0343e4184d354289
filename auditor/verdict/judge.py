"""Find the access to each object of a run from its ACL, the bucket policy and the settings of the bucket.

Most objects of a bucket are alike: the same statements cover them, and they have the same ACL. The engine therefore
runs once for each kind of object, and objects of one kind get the same ObjectAccess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from auditor.model.access import ObjectAccess, Verdict
from auditor.model.bucket import NOT_GIVEN, BucketFacts
from auditor.model.object import Acl, DormantAcl, Head, ObjectRef, Skipped, Unread
from auditor.verdict.dormant import with_dormant
from auditor.verdict.engine import AccessEngine
from auditor.verdict.object_facts import EncryptionFacts, views
from auditor.verdict.resources import KeyClass
from auditor.verdict.steps import LARGE
from auditor.verdict.trust import Trust

MOST_KINDS: Final = 4096
"""Largest number of kinds of objects whose access is cached."""

MOST_ENGINES: Final = 64
"""Largest number of KMS keys whose engine is cached."""
Kind = tuple[KeyClass, Acl | Unread | Skipped, str | None, EncryptionFacts, bool]
"""The facts of an object that decide its access. Objects of one kind have the same access. This also holds under a
hypothetical change: without some statements, with ACLs disabled, or with a public access block."""


class VerdictJudge:
    """Finds the access to each object of a run. The same facts give the same access. The mapping facts.key_policies may
    grow: the policy of an object's KMS key must be in it before the object is judged.

    trusted: the entries of the setting `trusted`. versions: True if the run lists versions; a version that is not the
    latest can be reached only by its version ID. now: the moment for which dates in conditions are judged; None if it
    is not known.
    """

    def __init__(
        self, facts: BucketFacts, trusted: Iterable[str], versions: bool = False, now: datetime | None = None
    ) -> None:
        self.trust = Trust.of(trusted)
        self._facts = facts
        self._versions = versions
        self._now = now
        self._key_policies = facts.key_policies if isinstance(facts.key_policies, Mapping) else {}
        self._engine = self._with_policies_of(())
        self._engines: dict[str, AccessEngine] = {}
        self._known: dict[Kind, ObjectAccess] = {}
        self._interned: dict[ObjectAccess, ObjectAccess] = {}
        self._dormant = lru_cache(MOST_KINDS)(self._with_dormant)

    def access(
        self,
        ref: ObjectRef,
        acl: Acl | Unread | Skipped,
        head: Head | Unread | Skipped,
        hidden: DormantAcl | None = None,
    ) -> ObjectAccess:
        """Return the access to one object: its verdict, audiences and reasons. hidden: the part of its stored ACL that
        counts for nothing today; None if none is known.
        """
        engine, kind = self._engine_and_kind(ref, acl, head)
        found = self._known.get(kind)  # no lru_cache: it would keep the engines, which are large, of thousands of keys
        if found is None:
            if len(self._known) >= MOST_KINDS:
                self._known.clear()
            found = self._known[kind] = self._judge(engine, kind)
        return found if hidden is None else self._dormant(found, hidden.acl)

    def _with_dormant(self, today: ObjectAccess, stored: Acl) -> ObjectAccess:
        owner = self._facts.owner if isinstance(self._facts.owner, str) else None
        return with_dormant(today, stored, owner, self.trust)

    @property
    def is_large(self) -> bool:
        """True if judging one kind of object took so many steps that a person may notice the time."""
        return any(engine.spent >= LARGE for engine in (self._engine, *self._engines.values()))

    def kind(self, ref: ObjectRef, acl: Acl | Unread | Skipped, head: Head | Unread | Skipped) -> Kind:
        """Return the kind of one object: the facts that decide its access."""
        return self._engine_and_kind(ref, acl, head)[1]

    def _engine_and_kind(
        self, ref: ObjectRef, acl: Acl | Unread | Skipped, head: Head | Unread | Skipped
    ) -> tuple[AccessEngine, Kind]:
        latest = ref.is_latest or not self._versions
        owner = None if isinstance(acl, Acl) and acl.owner else ref.owner
        key = EncryptionFacts.of(head, self._facts.semantics)
        engine = self._engine if key.kms is None else self._engine_of(key.kms)
        return engine, (engine.class_of(ref.key), acl, owner, key, latest)

    def _engine_of(self, kms: str) -> AccessEngine:
        """Return the engine for the objects under one KMS key. It knows the policy of this KMS key only."""
        if kms not in self._key_policies:
            return self._engine
        found = self._engines.get(kms)
        if found is None:
            if len(self._engines) >= MOST_ENGINES:
                self._engines.clear()
            found = self._engines[kms] = self._with_policies_of((kms,))
        return found

    def _with_policies_of(self, keys: Iterable[str]) -> AccessEngine:
        policies = self._facts.key_policies
        if not isinstance(policies, Skipped):
            policies = {key: policies[key] for key in keys}
        return AccessEngine(replace(self._facts, key_policies=policies), self.trust, self._now)

    def _judge(self, engine: AccessEngine, kind: Kind) -> ObjectAccess:
        covered, acl, owner, key, latest = kind
        acls, cause = views(acl, owner, self._facts)
        found = engine.access(covered, acls, key, latest=latest, cause=cause)
        return self._interned.setdefault(found, found)


def access_of(
    bucket: BucketFacts,
    *,
    acl: Acl | Unread | Skipped = NOT_GIVEN,
    head: Head | Unread | Skipped = NOT_GIVEN,
    key: str = "",
    owner: str | None = None,
    policy: str | None = None,
    trusted: Iterable[str] = (),
    now: datetime | None = None,
) -> ObjectAccess:
    """Return the access to one object from the given facts, without any call. The verdict is "unknown" if a needed fact
    is not given.

    owner: canonical ID of the object's owner, if no ACL names it. policy: JSON text of a bucket policy to judge by, in
    place of the bucket's own policy. trusted: entries as in the setting `trusted`. now: the moment for which dates in
    conditions are judged; without it, a statement with a date leaves the object unknown.
    """
    facts = bucket if policy is None else replace(bucket, policy=policy)
    ref = ObjectRef(key, etag="", size=0, last_modified="", owner=owner)
    return VerdictJudge(facts, trusted, now=now).access(ref, acl, head)


def verdict_of(
    bucket: BucketFacts,
    *,
    acl: Acl | Unread | Skipped = NOT_GIVEN,
    head: Head | Unread | Skipped = NOT_GIVEN,
    key: str = "",
    owner: str | None = None,
    policy: str | None = None,
    trusted: Iterable[str] = (),
    now: datetime | None = None,
) -> Verdict:
    """Return the verdict of one object from the given facts, as access_of() does."""
    found = access_of(bucket, acl=acl, head=head, key=key, owner=owner, policy=policy, trusted=trusted, now=now)
    return found.verdict
