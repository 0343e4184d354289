"""O02: the ACL lets anyone on the internet read the object."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.object import ALL_USERS, Acl
from auditor.rules.base import Hit, Severity, rule


@rule("O02", "acl-everyone-read", Severity.HIGH, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: a grant in an object's own ACL still works after the bucket policy has been tightened.
    Flagged: READ for the group AllUsers.
    Not flagged: READ for AuthenticatedUsers (O04); FULL_CONTROL for AllUsers (O01).
    Blind to: a public access block or a denying policy that masks the grant today; the verdict says so.
    Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant with PutObjectAcl.
    """
    for grant in acl.grants:
        if grant.grantee == ALL_USERS and grant.permission == "READ":
            yield Hit("its ACL lets anyone on the internet read it", grant.grantee, grant.permission)
