"""O13: a grant that is hidden today opens the object again once a setting of the bucket changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.finding import Severity
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, LOG_DELIVERY, Acl
from auditor.rules.base import Hit, rule

_PARTIES: Final = {
    ALL_USERS: "anyone on the internet",
    ANONYMOUS_OWNER: "anyone on the internet",
    AUTHENTICATED_USERS: "any AWS account",
}


@rule("O13", "acl-dormant-grant", Severity.MEDIUM, reads=("dormant", "bucket.owner", "trusted"))
def check(dormant: Acl, bucket_owner: str, trusted: frozenset[str]) -> Iterator[Hit]:
    """
    Why: BucketOwnerEnforced and IgnorePublicAcls hide grants and delete none; with the setting off, they count again.
    Flagged: a stored and hidden grant to a public group or to an account that is not trusted; an owner like that.
    Not flagged: grants in force (O01 to O08, O16); grants to LogDelivery.
    Blind to: objects that no S3 Inventory report shows as they are: GetObjectAcl returns what is in force.
    Fix: copy the object onto itself, or remove the grant before ACLs are turned on again.
    """
    insiders = trusted | {bucket_owner, ""}
    if dormant.owner not in insiders:
        owner = _PARTIES.get(dormant.owner, "another account")
        yield Hit(f"{owner} owns it again once ACLs count", dormant.owner, "FULL_CONTROL")
    for grant in dormant.grants:
        if grant.grantee not in insiders and grant.grantee not in (dormant.owner, LOG_DELIVERY):
            who = _PARTIES.get(grant.grantee, "another account")
            yield Hit(f"{who} has {grant.permission} again once the grant counts", grant.grantee, grant.permission)
