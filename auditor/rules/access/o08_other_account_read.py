"""O08: another account can read the object or its ACL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.finding import Severity
from auditor.model.object import Acl
from auditor.rules.base import Hit, rule

ALLOWS: Final = {"READ": "another account can read it", "READ_ACP": "another account can read its ACL"}


@rule("O08", "acl-account-read", Severity.MEDIUM, reads=("acl", "bucket.owner", "trusted"))
def check(acl: Acl, bucket_owner: str, trusted: frozenset[str]) -> Iterator[Hit]:
    """
    Why: a public access block does not touch a grant to one account, and nobody sees it in the bucket's policy.
    Flagged: READ or READ_ACP for a canonical ID that owns neither bucket nor object and is not trusted.
    Not flagged: the object's own owner (O09 if foreign); groups (O02, O04, O05); control of the ACL (O07).
    Blind to: which account stands behind a canonical ID, for no call tells; what a policy lets other accounts do.
    Fix: remove the grant with PutObjectAcl, or trust the account in the configuration.
    """
    for grant in acl.grants:
        known = grant.grantee in (bucket_owner, acl.owner) or grant.grantee in trusted
        if grant.permission in ALLOWS and not known and "://" not in grant.grantee:
            yield Hit(ALLOWS[grant.permission], grant.grantee, grant.permission)
