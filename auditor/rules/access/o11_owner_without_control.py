"""O11: the bucket's owner lacks full control of an object that another account owns."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.object import Acl, Grant
from auditor.rules.base import Hit, Severity, rule


@rule("O11", "owner-without-control", Severity.MEDIUM, reads=("acl", "bucket.owner"))
def check(acl: Acl, bucket_owner: str) -> Iterator[Hit]:
    """
    Why: the bucket's owner pays for an object, but may be unable to read the object or its ACL.
    Flagged: an object of another owner, trusted or anonymous ones included, whose ACL gives the bucket's owner no
        FULL_CONTROL.
    Not flagged: objects of the bucket's owner, whatever their ACL says; BucketOwnerEnforced, where no ACL counts.
    Blind to: objects whose ACL we may not read; they are undecided, and a missing grant is often the reason.
    Fix: set Object Ownership to BucketOwnerEnforced; until then, require bucket-owner-full-control for uploads.
    """
    if acl.owner != bucket_owner and Grant(bucket_owner, "FULL_CONTROL") not in acl.grants:
        yield Hit("the bucket's owner lacks full control of it")
