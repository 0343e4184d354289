"""Find the hidden part of a stored ACL that lets outsiders in again once ACLs count.

BucketOwnerEnforced and IgnorePublicAcls hide owners and grants, and delete none (S3 User Guide, "Controlling ownership
of objects" and "Blocking public access to your Amazon S3 storage"). Only an S3 Inventory shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from auditor.model.access import ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, LOG_DELIVERY, Acl, Grant
from auditor.verdict.trust import Trust

_EVERYBODY: Final = frozenset({ALL_USERS, AUTHENTICATED_USERS, ANONYMOUS_OWNER})

Outsider = Callable[[str], bool]
"""A function that tells if an owner or a grantee is neither the bucket's owner nor trusted."""


def hidden_owner(stored: Acl, outsider: Outsider) -> str | None:
    """Return the outsider that owns the object again once ACLs count; None if there is none. stored: the hidden part of
    an ACL, as DormantAcl.acl has it.
    """
    return stored.owner if stored.owner and outsider(stored.owner) else None


def hidden_grants(stored: Acl, outsider: Outsider) -> Iterator[Grant]:
    """Yield the hidden grants to outsiders, without those to the stored owner and to S3's log delivery."""
    for grant in stored.grants:
        if grant.grantee not in ("", stored.owner, LOG_DELIVERY) and outsider(grant.grantee):
            yield grant


def with_dormant(access: ObjectAccess, stored: Acl, bucket_owner: str | None, trust: Trust) -> ObjectAccess:
    """Return the access with the verdict dormant if the object is private and the hidden part of its stored ACL lets an
    outsider in again; else the access as it is.

    bucket_owner: canonical ID; None if it is not known. Then only everybody counts as an outsider: any other ID may be
    the owner's.
    """

    def outsider(party: str) -> bool:
        if bucket_owner is None:
            return party in _EVERYBODY
        return party != bucket_owner and trust.canonical(party) is None

    if access.verdict is not Verdict.PRIVATE:
        return access
    reasons = list(access.reasons)
    if (owner := hidden_owner(stored, outsider)) is not None:
        reasons.append(Reason(ReasonCode.STORED_OWNER, owner))
    grants = [f"{grant.grantee} {grant.permission}" for grant in hidden_grants(stored, outsider)]
    reasons += [Reason(ReasonCode.STORED_GRANT, cause) for cause in grants]
    if len(reasons) == len(access.reasons):
        return access
    return replace(access, verdict=Verdict.DORMANT, reasons=tuple(dict.fromkeys(reasons)))
