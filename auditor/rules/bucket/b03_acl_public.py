"""B03: the bucket's ACL is open to anyone, or to any AWS account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, Acl
from auditor.rules.base import Hit, Severity, rule

GROUPS: Final = {ALL_USERS: "anyone on the internet", AUTHENTICATED_USERS: "any AWS account"}
ALLOWS: Final = {
    "READ": "list its keys",
    "WRITE": "create objects in it, and delete those they own",
    "READ_ACP": "read its ACL",
    "WRITE_ACP": "change its ACL",
    "FULL_CONTROL": "list its keys, create objects in it, and change its ACL",
}


@rule("B03", "bucket-acl-public", Severity.CRITICAL, reads=("bucket.acl",))
def check(bucket_acl: Acl) -> Iterator[Hit]:
    """
    Why: strangers who can list the keys know where to look, and strangers who can write plant files at your cost; the
        bucket policy shows neither.
    Flagged: any grant of the bucket's ACL to AllUsers or AuthenticatedUsers, one finding each.
    Not flagged: LogDelivery, which delivers access logs; grants to single accounts; the objects' own ACLs (O01 to O08).
    Blind to: grants that S3 does not return while a public access block is on.
    Fix: remove the grant with PutBucketAcl, or set Object Ownership to BucketOwnerEnforced.
    """
    for grant in bucket_acl.grants:
        if grant.grantee in GROUPS:
            allowed = ALLOWS.get(grant.permission, f"do this to it: {grant.permission}")
            yield Hit(f"{GROUPS[grant.grantee]} can {allowed}", grant.grantee, grant.permission)
