"""O04: any AWS account can read the object."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.finding import Severity
from auditor.model.object import AUTHENTICATED_USERS, Acl
from auditor.rules.base import Hit, rule


@rule("O04", "acl-any-account-read", Severity.HIGH, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: AuthenticatedUsers is not the users of your account: it is whoever has an AWS account, so anyone.
    Flagged: READ for the group AuthenticatedUsers.
    Not flagged: READ for AllUsers (O02); FULL_CONTROL for AuthenticatedUsers (O03).
    Blind to: what masks the grant today (public access block, a denying policy); the verdict says so.
    Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant with PutObjectAcl.
    """
    for grant in acl.grants:
        if grant.grantee == AUTHENTICATED_USERS and grant.permission == "READ":
            yield Hit("any AWS account can read it", grant.grantee, grant.permission)
