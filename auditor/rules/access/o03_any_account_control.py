"""O03: the ACL lets any AWS account change the object's ACL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.object import AUTHENTICATED_USERS, Acl
from auditor.rules.base import Hit, Severity, rule

TAKE_OVER: Final = frozenset({"WRITE_ACP", "FULL_CONTROL"})


@rule("O03", "acl-any-account-control", Severity.CRITICAL, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: AuthenticatedUsers is everyone with an AWS account; any of them can then grant every permission to anyone.
    Flagged: WRITE_ACP or FULL_CONTROL for the group AuthenticatedUsers.
    Not flagged: READ for AuthenticatedUsers (O04); either permission for AllUsers (O01) or a canonical ID (O07).
    Blind to: a public access block or a denying policy that masks the grant today; the verdict says so.
    Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant with PutObjectAcl.
    """
    for grant in acl.grants:
        if grant.grantee == AUTHENTICATED_USERS and grant.permission in TAKE_OVER:
            yield Hit("its ACL lets any AWS account change the ACL", grant.grantee, grant.permission)
