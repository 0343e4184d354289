"""B01: ACLs are not disabled on the bucket."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.finding import Severity
from auditor.rules.base import Hit, rule


@rule("B01", "bucket-acls-enabled", Severity.MEDIUM, reads=("bucket.ownership",))
def check(bucket_ownership: str) -> Iterator[Hit]:
    """
    Why: while ACLs count, each object can be opened on its own, and an uploader from elsewhere owns what it uploads.
    Flagged: Object Ownership other than BucketOwnerEnforced, or never set.
    Not flagged: BucketOwnerEnforced, although old grants and owners come back if ACLs are ever enabled again.
    Blind to: whether anything still relies on the ACLs; access logs tell (aclRequired).
    Fix: move the grants that are needed to the bucket policy, then set Object Ownership to BucketOwnerEnforced.
    """
    if bucket_ownership != BUCKET_OWNER_ENFORCED:
        yield Hit(f"the objects' ACLs count: Object Ownership is {bucket_ownership}")
