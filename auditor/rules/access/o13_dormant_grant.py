"""O13: a hidden grant would open the object again if a setting of the bucket changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, Acl
from auditor.rules.base import Hit, Severity, rule
from auditor.verdict.dormant import hidden_grants, hidden_owner

_PARTIES: Final = {
    ALL_USERS: "anyone on the internet",
    ANONYMOUS_OWNER: "anyone on the internet",
    AUTHENTICATED_USERS: "any AWS account",
}


@rule("O13", "acl-dormant-grant", Severity.MEDIUM, reads=("dormant", "bucket.owner", "trusted"))
def check(dormant: Acl, bucket_owner: str, trusted: frozenset[str]) -> Iterator[Hit]:
    """
    Why: BucketOwnerEnforced and IgnorePublicAcls hide grants but delete none; if the setting is turned off, they take
        effect again.
    Flagged: a stored but hidden grant to a public group or to an account that is not trusted; such an owner.
    Not flagged: grants in force (O01 to O08, O16); grants to LogDelivery.
    Blind to: objects that no S3 Inventory report shows as they are: GetObjectAcl returns what is in force.
    Fix: copy the object onto itself, or remove the grant before ACLs are turned on again.
    """
    insiders = trusted | {bucket_owner}

    def outsider(party: str) -> bool:
        return party not in insiders

    if (owner := hidden_owner(dormant, outsider)) is not None:
        yield Hit(f"{_words(owner)} owns it again once ACLs count", owner, "FULL_CONTROL")
    for grant in hidden_grants(dormant, outsider):
        words = f"{_words(grant.grantee)} has {grant.permission} again once the grant counts"
        yield Hit(words, grant.grantee, grant.permission)


def _words(party: str) -> str:
    return _PARTIES.get(party, "another account")
