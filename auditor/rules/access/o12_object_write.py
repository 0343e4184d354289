"""O12: the ACL grants WRITE, which means nothing on an object."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.object import Acl
from auditor.rules.base import Hit, Severity, rule


@rule("O12", "acl-object-write", Severity.INFO, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: S3 has no WRITE on objects; the grant shows that someone took an object's ACL for a bucket's, and the other
        grants may be mistaken too.
    Flagged: WRITE for anyone, the object's owner included.
    Not flagged: WRITE_ACP and FULL_CONTROL, which do have an effect (O01, O03, O07).
    Blind to: what the author of the ACL intended.
    Fix: remove the grant with PutObjectAcl, and look for `public-read-write` in the program that uploads it.
    """
    for grant in acl.grants:
        if grant.permission == "WRITE":
            yield Hit("its ACL grants WRITE, which has no effect on an object", grant.grantee, grant.permission)
