"""O09: another account owns the object."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.finding import Severity
from auditor.model.object import ANONYMOUS_OWNER
from auditor.rules.base import Hit, rule


@rule("O09", "owner-foreign", Severity.HIGH, reads=("owner", "bucket.owner", "trusted"))
def check(owner: str, bucket_owner: str, trusted: frozenset[str]) -> Iterator[Hit]:
    """
    Why: an object's owner decides who reads it; the bucket's policy and its owner's settings do not bind that account.
    Flagged: an owner other than the bucket's; medium when the configuration trusts it, high otherwise.
    Not flagged: anonymous uploads (O10); buckets with BucketOwnerEnforced, whose owner owns all there is in them.
    Blind to: which account stands behind a canonical ID; the owners that come back if ACLs are enabled again.
    Fix: set Object Ownership to BucketOwnerEnforced; or let the owner grant you READ, and copy the object over itself.
    """
    if owner in (bucket_owner, ANONYMOUS_OWNER):
        return
    if owner in trusted:
        yield Hit("a trusted account owns it, not the bucket's owner", owner, severity=Severity.MEDIUM)
    else:
        yield Hit("another account owns it", owner)
