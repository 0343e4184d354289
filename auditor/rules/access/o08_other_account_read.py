"""O08: the ACL lets another account read the object or its ACL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.object import ANONYMOUS_OWNER, Acl
from auditor.rules.base import Hit, Severity, rule

ALLOWS: Final = {
    "READ": "its ACL lets another account read it",
    "READ_ACP": "its ACL lets another account read the ACL",
}


@rule("O08", "acl-account-read", Severity.MEDIUM, reads=("acl", "bucket.owner", "trusted"))
def check(acl: Acl, bucket_owner: str, trusted: frozenset[str]) -> Iterator[Hit]:
    """
    Why: a public access block does not stop a grant to one account, and the bucket policy does not show the grant.
    Flagged: READ or READ_ACP for a canonical ID that owns neither the bucket nor the object and is not trusted.
    Not flagged: grants to the object's own owner (O09 if foreign), to groups (O02, O04, O05), to the anonymous ID
        (O16), of control (O07).
    Blind to: the account behind a canonical ID, because no call reveals it; grants in the bucket policy.
    Fix: remove the grant with PutObjectAcl, or trust the account in the configuration.
    """
    for grant in acl.grants:
        known = grant.grantee in (bucket_owner, acl.owner, ANONYMOUS_OWNER) or grant.grantee in trusted
        if grant.permission in ALLOWS and not known and "://" not in grant.grantee:
            yield Hit(ALLOWS[grant.permission], grant.grantee, grant.permission)
