"""O07: another account can change the object's ACL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.finding import Severity
from auditor.model.object import Acl
from auditor.rules.base import Hit, rule

ALLOWS: Final = {
    "WRITE_ACP": "another account can change its ACL",
    "FULL_CONTROL": "another account can read it and change its ACL",
}


@rule("O07", "acl-account-control", Severity.HIGH, reads=("acl", "bucket.owner", "trusted"))
def check(acl: Acl, bucket_owner: str, trusted: frozenset[str]) -> Iterator[Hit]:
    """
    Why: a public access block does not touch a grant to one account, and an ACL's writer can open it to the world.
    Flagged: WRITE_ACP or FULL_CONTROL for a canonical ID that owns neither bucket nor object and is not trusted.
    Not flagged: the object's own owner (O09 if foreign); groups (O01, O03); reading only (O08).
    Blind to: which account stands behind a canonical ID, for no call tells; what a policy lets other accounts do.
    Fix: remove the grant with PutObjectAcl, or trust the account in the configuration.
    """
    for grant in acl.grants:
        known = grant.grantee in (bucket_owner, acl.owner) or grant.grantee in trusted
        if grant.permission in ALLOWS and not known and "://" not in grant.grantee:
            yield Hit(ALLOWS[grant.permission], grant.grantee, grant.permission)
