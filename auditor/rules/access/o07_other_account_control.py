"""O07: the ACL lets another account change the object's ACL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.object import ANONYMOUS_OWNER, Acl
from auditor.rules.base import Hit, Severity, rule

ALLOWS: Final = {
    "WRITE_ACP": "its ACL lets another account change the ACL",
    "FULL_CONTROL": "its ACL lets another account read it and change the ACL",
}


@rule("O07", "acl-account-control", Severity.HIGH, reads=("acl", "bucket.owner", "trusted"))
def check(acl: Acl, bucket_owner: str, trusted: frozenset[str]) -> Iterator[Hit]:
    """
    Why: a public access block does not stop a grant to one account, and that account can open the ACL to everyone.
    Flagged: WRITE_ACP or FULL_CONTROL for a canonical ID that owns neither the bucket nor the object and is not
        trusted.
    Not flagged: grants to the object's own owner (O09 if foreign), to groups (O01, O03), to the anonymous ID (O16), for
        reading only (O08).
    Blind to: the account behind a canonical ID, because no call reveals it; grants in the bucket policy.
    Fix: remove the grant with PutObjectAcl, or trust the account in the configuration.
    """
    for grant in acl.grants:
        known = grant.grantee in (bucket_owner, acl.owner, ANONYMOUS_OWNER) or grant.grantee in trusted
        if grant.permission in ALLOWS and not known and "://" not in grant.grantee:
            yield Hit(ALLOWS[grant.permission], grant.grantee, grant.permission)
