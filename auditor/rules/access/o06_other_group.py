"""O06: a group other than the two public ones has a grant on the object."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.object import LOG_DELIVERY, PUBLIC_GROUPS, Acl
from auditor.rules.base import Hit, Severity, rule


@rule("O06", "acl-other-group", Severity.LOW, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: a grant to S3's log delivery belongs on a bucket, so one on an object is a mistake; a group that S3 does not
        document may let in anyone.
    Flagged: a grant to LogDelivery, or to any group URI that is not one of the two public groups.
    Not flagged: AllUsers and AuthenticatedUsers (O01 to O05); WRITE, which means nothing on an object (O12).
    Blind to: the members of an unknown group.
    Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant with PutObjectAcl.
    """
    for grant in acl.grants:
        if "://" not in grant.grantee or grant.grantee in PUBLIC_GROUPS or grant.permission == "WRITE":
            continue
        group = "the log delivery of S3" if grant.grantee == LOG_DELIVERY else "a group that S3 does not document"
        yield Hit(f"{group} has a grant on it", grant.grantee, grant.permission)
