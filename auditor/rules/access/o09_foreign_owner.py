"""O09: another account owns the object."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.object import ANONYMOUS_OWNER
from auditor.rules.base import Hit, Severity, rule


@rule("O09", "owner-foreign", Severity.HIGH, reads=("owner", "bucket.owner", "trusted"))
def check(owner: str, bucket_owner: str, trusted: frozenset[str]) -> Iterator[Hit]:
    """
    Why: the object's owner decides who can read it; the bucket policy and the bucket owner's settings do not apply.
    Flagged: an owner other than the bucket's owner: with severity medium if the owner is trusted, and high if not.
    Not flagged: anonymous uploads (O10); buckets with BucketOwnerEnforced, whose owner owns every object.
    Blind to: the account behind a canonical ID; the former owners that return if ACLs are enabled again.
    Fix: set Object Ownership to BucketOwnerEnforced; or ask the owner for READ, and copy the object over itself.
    """
    if owner in (bucket_owner, ANONYMOUS_OWNER):
        return
    if owner in trusted:
        yield Hit("a trusted account owns it, not the bucket's owner", owner, severity=Severity.MEDIUM)
    else:
        yield Hit("another account owns it", owner)
