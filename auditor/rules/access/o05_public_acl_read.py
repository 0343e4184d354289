"""O05: the ACL lets anyone, or any AWS account, read the object's ACL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, Acl
from auditor.rules.base import Hit, Severity, rule

GROUPS: Final = {ALL_USERS: "anyone on the internet", AUTHENTICATED_USERS: "any AWS account"}


@rule("O05", "acl-public-acl-read", Severity.MEDIUM, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: the ACL names the object's owner and every account with access, which tells an attacker where to go next.
    Flagged: READ_ACP for the group AllUsers or AuthenticatedUsers.
    Not flagged: FULL_CONTROL, which includes READ_ACP (O01, O03); READ_ACP for a canonical ID (O08).
    Blind to: a public access block or a denying policy that masks the grant today; the verdict says so.
    Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant with PutObjectAcl.
    """
    for grant in acl.grants:
        if grant.grantee in GROUPS and grant.permission == "READ_ACP":
            yield Hit(f"its ACL lets {GROUPS[grant.grantee]} read the ACL", grant.grantee, grant.permission)
