"""O04: the ACL lets any AWS account read the object."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.object import AUTHENTICATED_USERS, Acl
from auditor.rules.base import Hit, Severity, rule


@rule("O04", "acl-any-account-read", Severity.HIGH, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: AuthenticatedUsers does not mean your own users: it is everyone with an AWS account.
    Flagged: READ for the group AuthenticatedUsers.
    Not flagged: READ for AllUsers (O02); FULL_CONTROL for AuthenticatedUsers (O03).
    Blind to: a public access block or a denying policy that masks the grant today; the verdict says so.
    Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant with PutObjectAcl.
    """
    for grant in acl.grants:
        if grant.grantee == AUTHENTICATED_USERS and grant.permission == "READ":
            yield Hit("its ACL lets any AWS account read it", grant.grantee, grant.permission)
