"""Who can reach one object today: its ACL, the bucket policy and the public access block, brought to one word.

Choices where S3's guide leaves room, all to the careful side:

* A grant to a group other than the two public ones (LogDelivery, or one we do not know) shares: it is someone else.
* AuthenticatedUsers, and everyone of a policy, stay exposed on an SSE-KMS object: an account that the key's own policy
  admits could be among them. Only what AllUsers may *read* is masked there: a request without a signature has no key.
* RestrictPublicBuckets also cuts other accounts off a public policy; what such a policy allows to them stays shared.
* A foreign owner may do everything to the object, so that only a Deny of every way masks it.
"""

from __future__ import annotations

from typing import Final

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts
from auditor.model.finding import Verdict
from auditor.model.object import ALL_USERS, PUBLIC_GROUPS, Acl, Grant, Head, ObjectRef, Skipped, Unread
from auditor.model.policy import Policy, parse
from auditor.verdict.principals import Principals
from auditor.verdict.reach import ALL_WAYS, NOTHING, READ, READ_ACP, VERSION_WAYS, WRITE_ACP, CompiledPolicy, Reach

WAYS_OF: Final = {
    "READ": READ,
    "READ_ACP": READ_ACP,
    "WRITE": 0,  # means nothing on an object
    "WRITE_ACP": WRITE_ACP,
    "FULL_CONTROL": ALL_WAYS,
}
_RANKED: Final = tuple(reversed(Verdict))
_PRIVATE, _MASKED, _SHARED, _UNKNOWN, _EXPOSED = range(len(_RANKED))


class VerdictJudge:
    """Made once a run; `verdict` is a pure function of one object's facts.

    trusted: canonical IDs, account numbers or policy principals that do not count as others. versions: the run lists
    versions, so that the objects that are not the latest can be reached by version only.
    """

    def __init__(self, facts: BucketFacts, trusted: frozenset[str], versions: bool) -> None:
        self._insiders = Principals(facts, trusted)
        self._own = trusted | {self._insiders.owner} if self._insiders.owner else trusted
        self._versions = versions
        self._enforced = facts.ownership == BUCKET_OWNER_ENFORCED
        self._ignores_public_acls = facts.ignores_public_acls
        self._restricts_public_policy = facts.restricts_public_policy
        policy = _policy(facts)
        self._floor = _UNKNOWN if policy is None else _PRIVATE
        self._policy = CompiledPolicy(policy or Policy(), facts.bucket, self._insiders)

    def verdict(self, ref: ObjectRef, acl: Acl | Unread | Skipped, head: Head | Unread | Skipped) -> Verdict:
        """The strongest of what the ACL and the policy come to."""
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
        """ways: those that lead to the object at all. live: those of them that the policy does not deny to everyone."""
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
        """A canonical ID that is no insider's, as far as is known, and the ways that are open to it."""
        if not live:
            return _MASKED
        return _UNKNOWN if self._insiders.owner is None else _SHARED


def _policy(facts: BucketFacts) -> Policy | None:
    """None: the policy is not known."""
    if not isinstance(facts.policy, str):
        return None
    try:
        return parse(facts.policy)
    except ValueError:
        return None


def _needs_key(head: Head | Unread | Skipped) -> bool:
    """The object is known to be encrypted under a KMS key."""
    return isinstance(head, Head) and (head.server_side_encryption or "").startswith("aws:kms")
