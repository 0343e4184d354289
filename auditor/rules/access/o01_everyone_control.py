"""O01: the ACL lets anyone on the internet change the object's ACL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.object import ALL_USERS, Acl
from auditor.rules.base import Hit, Severity, rule

TAKE_OVER: Final = frozenset({"WRITE_ACP", "FULL_CONTROL"})


@rule("O01", "acl-everyone-control", Severity.CRITICAL, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: a stranger who can write the ACL can grant every permission on the object to anyone.
    Flagged: WRITE_ACP or FULL_CONTROL for the group AllUsers.
    Not flagged: READ for AllUsers (O02); either permission for AuthenticatedUsers (O03) or a canonical ID (O07).
    Blind to: a public access block or a denying policy that masks the grant today; the verdict says so.
    Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant with PutObjectAcl.
    """
    for grant in acl.grants:
        if grant.grantee == ALL_USERS and grant.permission in TAKE_OVER:
            yield Hit("its ACL lets anyone on the internet change the ACL", grant.grantee, grant.permission)
