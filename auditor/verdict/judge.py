"""Find an object's verdict from its ACL, the bucket policy and the public access block.

In some cases S3's guide does not say who has access. The judge then takes the careful side:

* A grant to a group other than the two public ones (LogDelivery, or an unknown group) shares the object.
* AuthenticatedUsers, and the principal `*` of a policy, expose an object that is encrypted under a KMS key: the policy
  of that key may admit one of these accounts. A READ grant to AllUsers is masked there, because an unsigned request
  cannot use the KMS key.
* RestrictPublicBuckets also keeps other accounts from using a public policy, but the object still counts as shared.
* An owner other than the bucket's may do everything to the object. A Deny masks the object only if it covers every
  action that could reach the object.

Internally a verdict is its rank: 0 for private, then masked, shared, unknown, and 4 for exposed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, NOT_GIVEN, BucketFacts
from auditor.model.finding import Verdict
from auditor.model.object import ALL_USERS, PUBLIC_GROUPS, Acl, Grant, Head, ObjectRef, Skipped, Unread
from auditor.model.policy import Policy, parse
from auditor.verdict.principals import Principals
from auditor.verdict.reach import ALL_WAYS, NOTHING, READ, READ_ACP, VERSION_WAYS, WRITE_ACP, CompiledPolicy, Reach

WAYS_OF: Final = {
    "READ": READ,
    "READ_ACP": READ_ACP,
    "WRITE": 0,  # has no effect on an object
    "WRITE_ACP": WRITE_ACP,
    "FULL_CONTROL": ALL_WAYS,
}
_RANKED: Final = tuple(reversed(Verdict))
_PRIVATE, _MASKED, _SHARED, _UNKNOWN, _EXPOSED = range(len(_RANKED))


class VerdictJudge:
    """Finds the verdict of each object of a run: the audience that can reach it. The same facts give the same verdict.

    trusted: canonical IDs, account numbers or policy principals that count as insiders. versions: True if the run lists
    versions; a version that is not the latest can be reached only by its version ID.
    """

    def __init__(self, facts: BucketFacts, trusted: frozenset[str], versions: bool = False) -> None:
        self._principals = Principals(facts, trusted)
        self._own = trusted | {self._principals.owner} if self._principals.owner else trusted
        self._versions = versions
        self._enforced = facts.ownership == BUCKET_OWNER_ENFORCED
        self._ignores_public_acls = facts.ignores_public_acls
        self._restricts_public_policy = facts.restricts_public_policy
        policy = _policy(facts)
        self._floor = _UNKNOWN if policy is None else _PRIVATE
        self._policy = CompiledPolicy(policy or Policy(), facts.bucket, self._principals)

    def verdict(self, ref: ObjectRef, acl: Acl | Unread | Skipped, head: Head | Unread | Skipped) -> Verdict:
        """Return the verdict of one object: the wider one of the verdicts by its ACL and by the bucket policy."""
        ways = VERSION_WAYS if self._versions and not ref.is_latest else ALL_WAYS
        reach = self._policy.reach(ref.key)
        rank = self._floor
        if reach is not NOTHING:
            rank = max(rank, self._by_policy(reach, ways))
        if rank < _EXPOSED:
            rank = max(rank, self._by_acl(ref, acl, head, ways, ways & ~reach.denied))
        return _RANKED[rank]

    def _by_policy(self, reach: Reach, ways: int) -> int:
        everyone, others, undecided, denied = reach
        live = ways & ~denied
        if everyone & live and not self._restricts_public_policy:
            return _EXPOSED
        if undecided & live:
            return _UNKNOWN
        if others & live:
            return _SHARED
        return _MASKED if (everyone | others | undecided) & ways else _PRIVATE

    def _by_acl(
        self, ref: ObjectRef, acl: Acl | Unread | Skipped, head: Head | Unread | Skipped, ways: int, live: int
    ) -> int:
        """Return the rank of the verdict that the ACL alone gives. ways: the actions that can reach the object, as a
        bit set. live: those of them that the bucket policy does not deny to everyone.
        """
        if isinstance(acl, Unread):
            return _UNKNOWN
        if self._enforced:
            return _PRIVATE
        if isinstance(acl, Skipped):
            return _UNKNOWN
        owner = acl.owner or ref.owner
        rank = _PRIVATE if owner in self._own else self._by_another(live)
        for grant in acl.grants:
            if grant.grantee not in self._own or grant.grantee in PUBLIC_GROUPS:
                rank = max(rank, self._by_grant(grant, head, ways, live))
        return rank

    def _by_grant(self, grant: Grant, head: Head | Unread | Skipped, ways: int, live: int) -> int:
        granted = WAYS_OF.get(grant.permission)
        if granted is None:
            return _UNKNOWN
        if not granted & ways:
            return _PRIVATE
        if grant.grantee in PUBLIC_GROUPS:
            if grant.grantee == ALL_USERS and _needs_key(head):
                live &= ~READ
            return _EXPOSED if granted & live and not self._ignores_public_acls else _MASKED
        if "://" in grant.grantee:
            return _SHARED if granted & live else _MASKED
        return self._by_another(granted & live)

    def _by_another(self, live: int) -> int:
        """Return the rank of the verdict for a canonical ID, an owner's or a grantee's, that is not known as an
        insider. live: the actions that the ID may use, as a bit set.
        """
        if not live:
            return _MASKED
        return _UNKNOWN if self._principals.owner is None else _SHARED


def verdict_of(
    bucket: BucketFacts,
    *,
    acl: Acl | Unread | Skipped = NOT_GIVEN,
    head: Head | Unread | Skipped = NOT_GIVEN,
    key: str = "",
    owner: str | None = None,
    policy: str | None = None,
    trusted: Iterable[str] = (),
) -> Verdict:
    """Return the verdict of one object from the given facts, without any call; "unknown" if a needed fact is not given.

    owner: canonical ID of the object's owner, if no ACL names it. policy: JSON text of a bucket policy to judge by in
    place of the bucket's. trusted: canonical IDs, account numbers or policy principals that count as insiders.
    """
    facts = bucket if policy is None else replace(bucket, policy=policy)
    ref = ObjectRef(key, etag="", size=0, last_modified="", owner=owner)
    return VerdictJudge(facts, frozenset(trusted)).verdict(ref, acl, head)


def _policy(facts: BucketFacts) -> Policy | None:
    """Return the parsed bucket policy; None if it was not read, or is malformed."""
    if not isinstance(facts.policy, str):
        return None
    try:
        return parse(facts.policy)
    except ValueError:
        return None


def _needs_key(head: Head | Unread | Skipped) -> bool:
    """True if HEAD says that the object is encrypted under a KMS key."""
    return isinstance(head, Head) and (head.server_side_encryption or "").startswith("aws:kms")
