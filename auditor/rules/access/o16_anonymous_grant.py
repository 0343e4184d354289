"""O16: the ACL grants access to the anonymous user's canonical ID, which means everyone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.object import ANONYMOUS_OWNER, Acl
from auditor.rules.base import Hit, Severity, rule

ALLOWS: Final = {
    "READ": ("its ACL lets anyone on the internet read it", Severity.HIGH),
    "READ_ACP": ("its ACL lets anyone on the internet read the ACL", Severity.MEDIUM),
    "WRITE_ACP": ("its ACL lets anyone on the internet change the ACL", Severity.CRITICAL),
    "FULL_CONTROL": ("its ACL lets anyone on the internet read it and change the ACL", Severity.CRITICAL),
}


@rule("O16", "acl-anonymous-grant", Severity.HIGH, reads=("acl",))
def check(acl: Acl) -> Iterator[Hit]:
    """
    Why: this canonical ID looks like one account but stands for every request without credentials; AWS does not say
        that a public access block hides such a grant.
    Flagged: a grant to the anonymous ID: critical for WRITE_ACP and FULL_CONTROL, high for READ, medium for READ_ACP.
    Not flagged: the anonymous uploader's grant on its own object (O10); the groups AllUsers (O01, O02, O05) and
        AuthenticatedUsers (O03, O04); WRITE (O12).
    Blind to: a denying policy that masks the grant today; the verdict says so.
    Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant with PutObjectAcl.
    """
    if acl.owner == ANONYMOUS_OWNER:
        return
    for grant in acl.grants:
        if grant.grantee == ANONYMOUS_OWNER and grant.permission in ALLOWS:
            message, severity = ALLOWS[grant.permission]
            yield Hit(f"{message}, by a grant to the anonymous ID", grant.grantee, grant.permission, severity)
