"""Apply a hypothetical change to a bucket's facts and to the facts of its objects, for `auditor what-if`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, PublicAccessBlock, Semantics
from auditor.model.object import Acl, DormantAcl, ObjectRef, Skipped, Unread

OBJECT_WRITER: Final = "ObjectWriter"
ALL_ON: Final = PublicAccessBlock(True, True, True, True)
OF_ACLS: Final = frozenset({"block_public_acls", "ignore_public_acls"})
"""The switches of a public access block that act on ACLs."""
OF_POLICIES: Final = frozenset({"block_public_policy", "restrict_public_buckets"})
"""The switches of a public access block that act on bucket policies."""
NOT_IN_FORCE: Final = Skipped("the policy is not in force")
NO_ACL_COUNTS: Final = Skipped("ACLs would be disabled (BucketOwnerEnforced)")
COMES_BACK: Final = Skipped("the ACL that would come back was not read")
MOST_BYTES: Final = 20 * 1024
"""Largest size of a bucket policy in bytes (Bucket policies, S3 User Guide)."""


def switches(*, acls: bool, policies: bool) -> frozenset[str]:
    """Return the switches that act on ACLs, or on bucket policies, or both."""
    return (OF_ACLS if acls else frozenset()) | (OF_POLICIES if policies else frozenset())


class BucketChange(Struct, frozen=True, kw_only=True):
    """A hypothetical change of a bucket's settings. Default encryption is not among them, because changing it changes
    no existing object.

    acls: False if ACLs are turned off (BucketOwnerEnforced), True if they are turned on (ObjectWriter), None if they
    stay. policy: text of the new bucket policy; "" if the policy is deleted, None if it stays. block: True if all four
    switches of a public access block are turned on; it does not matter if of the bucket or of its account. False if the
    bucket's switches are turned off, None if they stay. switches: names of single switches of the bucket's
    PublicAccessBlock that are turned on. requester_pays: True if the requester is to pay. trusted: further entries of
    the setting `trusted`.
    """

    acls: bool | None = None
    policy: str | None = None
    block: bool | None = None
    switches: frozenset[str] = frozenset()
    requester_pays: bool = False
    trusted: frozenset[str] = frozenset()

    @property
    def nothing(self) -> bool:
        return self == BucketChange()

    def facts(self, facts: BucketFacts) -> BucketFacts:
        """Return the bucket's facts under the change."""
        if self.acls is not None:
            on = OBJECT_WRITER if facts.ownership == BUCKET_OWNER_ENFORCED else facts.ownership
            facts = replace(facts, ownership=on if self.acls else BUCKET_OWNER_ENFORCED)
        if self.policy is not None and self.policy != facts.policy:
            # S3's word on the new policy is not known; without a policy there is nothing public.
            facts = replace(facts, policy=self.policy, policy_is_public=NOT_IN_FORCE if self.policy else False)
        if self.block is not None:
            facts = replace(facts, public_access_block=ALL_ON if self.block else PublicAccessBlock())
        if self.switches:
            block = facts.public_access_block
            block = block if isinstance(block, PublicAccessBlock) else PublicAccessBlock()
            facts = replace(facts, public_access_block=replace(block, **dict.fromkeys(self.switches, True)))
        if self.requester_pays:
            facts = replace(facts, request_payer="Requester")
        return facts

    def remarks(self, facts: BucketFacts) -> Iterator[str]:
        """Yield a sentence for each thing that may keep S3 from accepting the change. facts: the bucket's facts before
        the change.
        """
        if self.acls is False and isinstance(facts.acl, Acl):
            others = {grant.grantee for grant in facts.acl.grants} - {facts.owner}
            if others:
                yield (
                    "S3 refuses to turn ACLs off while the bucket's ACL grants something to others"
                    " (InvalidBucketAclWithObjectOwnership): remove these grants first"
                )
        if not self.policy:
            return
        if len(self.policy.encode(errors="replace")) > MOST_BYTES:
            yield f"S3 refuses a policy of more than {MOST_BYTES:,} bytes"
        after = self.facts(facts)
        levels = (after.public_access_block, after.account_public_access_block)
        if any(isinstance(level, PublicAccessBlock) and level.block_public_policy for level in levels):
            yield "S3 refuses the policy if it counts it as public, because BlockPublicPolicy is on"


class ChangedObjects:
    """Gives the facts of each object under a hypothetical change. facts: the bucket's facts before the change."""

    def __init__(self, facts: BucketFacts, change: BucketChange) -> None:
        after = change.facts(facts)
        was_off, is_off = facts.ownership == BUCKET_OWNER_ENFORCED, after.ownership == BUCKET_OWNER_ENFORCED
        self._no_acl_counts = is_off and not was_off
        self._owner = facts.owner if isinstance(facts.owner, str) else None
        # S3 answers with the ACL that counts today: with none of the grants that come back.
        hidden = facts.semantics is not Semantics.CEPH and facts.ignores_public_acls and not after.ignores_public_acls
        self._acls_come_back = not is_off and (was_off or hidden)
        self._owners_come_back = was_off and not is_off

    def object(
        self, ref: ObjectRef, acl: Acl | Unread | Skipped, hidden: DormantAcl | None = None
    ) -> tuple[ObjectRef, Acl | Unread | Skipped]:
        """Return the listing entry and the ACL of an object under the change. hidden: the part of its stored ACL that
        counts for nothing before the change; None if none is known.
        """
        if self._no_acl_counts:
            return replace(ref, owner=self._owner), NO_ACL_COUNTS
        if self._acls_come_back:
            acl = self._stored(acl, hidden)
        return (replace(ref, owner=None), acl) if self._owners_come_back else (ref, acl)

    def hidden(self, hidden: DormantAcl | None) -> DormantAcl | None:
        """Return the part of a stored ACL that counts for nothing under the change, too; None if it comes back."""
        return None if self._acls_come_back else hidden

    def _stored(self, acl: Acl | Unread | Skipped, hidden: DormantAcl | None) -> Acl | Skipped:
        """Return the stored ACL, which comes back. It may lack grants to the bucket's owner: they open nothing."""
        if hidden is None:
            return COMES_BACK
        stored = hidden.acl
        if self._owners_come_back:
            return stored if stored.owner else COMES_BACK
        return Acl(acl.owner, (*acl.grants, *stored.grants)) if isinstance(acl, Acl) else COMES_BACK
