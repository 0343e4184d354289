"""B03: the bucket's ACL is open to anyone, or to any AWS account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.finding import Severity
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, Acl
from auditor.rules.base import Hit, rule

WHO: Final = {ALL_USERS: "anyone on the internet", AUTHENTICATED_USERS: "any AWS account"}
WHAT: Final = {
    "READ": "list its keys",
    "WRITE": "create objects in it, and delete those they own",
    "READ_ACP": "read its ACL",
    "WRITE_ACP": "change its ACL",
    "FULL_CONTROL": "list its keys, create objects in it, and change its ACL",
}


@rule("B03", "bucket-acl-public", Severity.CRITICAL, reads=("bucket.acl",))
def check(bucket_acl: Acl) -> Iterator[Hit]:
    """
    Why: who lists the keys knows where to look, who writes can plant files at your cost; no policy shows either.
    Flagged: any grant of the bucket's ACL to AllUsers or AuthenticatedUsers, one finding each.
    Not flagged: LogDelivery, which delivers access logs; grants to single accounts; the objects' own ACLs (O01 to O08).
    Blind to: grants that a public access block hides while it is on: S3 does not return them.
    Fix: remove the grant with PutBucketAcl, or set Object Ownership to BucketOwnerEnforced.
    """
    for grant in bucket_acl.grants:
        if grant.grantee in WHO:
            what = WHAT.get(grant.permission, f"do this to it: {grant.permission}")
            yield Hit(f"{WHO[grant.grantee]} can {what}", grant.grantee, grant.permission)
