"""B01: ACLs are not disabled on the bucket."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.rules.base import Hit, Severity, rule


@rule("B01", "bucket-acls-enabled", Severity.MEDIUM, reads=("bucket.ownership",))
def check(bucket_ownership: str) -> Iterator[Hit]:
    """
    Why: while ACLs are enabled, each object can be opened on its own, and another account owns the objects that it
        uploads.
    Flagged: an Object Ownership other than BucketOwnerEnforced, or none.
    Not flagged: BucketOwnerEnforced, although old grants and owners return if ACLs are enabled again.
    Blind to: users who still rely on the ACLs; the access logs show them (aclRequired).
    Fix: move the necessary grants to the bucket policy, then set Object Ownership to BucketOwnerEnforced.
    """
    if bucket_ownership != BUCKET_OWNER_ENFORCED:
        yield Hit(f"the objects' ACLs are in force: Object Ownership is {bucket_ownership}")
