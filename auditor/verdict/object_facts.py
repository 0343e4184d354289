"""The facts of one object that decide its access: who owns it, who has grants, and which key encrypts it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from auditor.model.access import Reason, ReasonCode
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, Semantics
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    PUBLIC_GROUPS,
    Acl,
    Head,
    Skipped,
    Unread,
)
from auditor.verdict.ways import CONTROL, WAYS_OF

SOMEBODY: Final = "?"
"""Stands for the canonical ID of an account that is not known."""


class EncryptionFacts(NamedTuple):
    """The encryption key that a reader of an object's bytes needs. kms: ARN or ID of the KMS key; "" if HEAD does not
    name it, None if there is no KMS key. customer: True for SSE-C, whose key only the uploader has.
    """

    kms: str | None = None
    customer: bool = False

    @classmethod
    def of(cls, head: Head | Unread | Skipped, semantics: Semantics) -> EncryptionFacts:
        """Return the encryption key that the HEAD names; no key if the HEAD was not read."""
        if isinstance(head, Unread):
            return cls(customer=head.code == "SSE-C")
        if not isinstance(head, Head):
            return cls()
        if head.sse_customer_algorithm:
            return cls(customer=True)
        if (head.server_side_encryption or "").startswith("aws:kms") and semantics is not Semantics.CEPH:
            return cls(kms=head.sse_kms_key_id or "")
        return cls()


class Source(NamedTuple):
    """A part of an ACL that gives access: a grant, or the owner. grantee: canonical ID or a group's URI. cause: its
    text for reasons.
    """

    grantee: str
    ways: int
    cause: str
    owner: bool = False
    assumed: Reason | None = None
    """The reason to give in place of `cause`, if it is not known whether the object has this grant."""


class AclView(NamedTuple):
    """An ACL as the judge uses it: the owner, and the actions that each grantee may use.

    owner: canonical ID, or SOMEBODY. foreign: True if the owner is an unknown account that is not the bucket's owner.
    """

    owner: str
    sources: tuple[Source, ...]
    foreign: bool = False
    enforced: bool = False
    """True for the ACL under BucketOwnerEnforced, which S3 refuses to write."""


def views(
    acl: Acl | Unread | Skipped, listed_owner: str | None, facts: BucketFacts
) -> tuple[tuple[AclView, ...], Reason]:
    """Return the ACLs that the object may have, and the reason to give if the verdict depends on which one it has. The
    result is one ACL if the ACL was read, or if no ACL counts.

    If the ownership controls were not read, the ACL can tell them. Under BucketOwnerEnforced, S3 returns an ACL of the
    bucket's owner alone (S3 API, GetObjectAcl), so an ACL of another owner shows that ACLs count.
    """
    own = facts.owner if isinstance(facts.owner, str) and facts.owner else SOMEBODY
    if facts.ownership == BUCKET_OWNER_ENFORCED:
        return (AclView(own, (), enforced=True),), Reason(ReasonCode.OWNER_UNKNOWN)
    if isinstance(acl, Acl):
        unclear = next((grant for grant in acl.grants if grant.permission not in WAYS_OF), None)
        cause = Reason(ReasonCode.OWNER_UNKNOWN)
        if unclear is not None:
            cause = Reason(ReasonCode.ACL_UNREAD, f"{unclear.grantee} {unclear.permission}")
        return tuple(_read(acl, listed_owner, own, facts.semantics, cause)), cause
    cause = Reason(ReasonCode.ACL_UNREAD, acl.code if isinstance(acl, Unread) else "skipped")
    found = [] if isinstance(facts.ownership, str) else [AclView(own, (), enforced=True)]
    for owner, foreign in _owners(listed_owner, own):
        base = _owner_source(owner, own, foreign, facts.semantics)
        found += [
            AclView(owner, base, foreign),
            AclView(owner, (*base, Source(ALL_USERS, CONTROL, ALL_USERS, assumed=cause)), foreign),
            AclView(owner, (*base, Source(SOMEBODY, CONTROL, SOMEBODY, assumed=cause)), foreign),
        ]
    return tuple(dict.fromkeys(found)), cause


def _owners(named: str | None, own: str) -> list[tuple[str, bool]]:
    """Return the possible owners of an object. Each comes with True if it is an unknown account that is not the
    bucket's owner.
    """
    return [(named, False)] if named else [(own, False), (SOMEBODY, True)]


def _read(acl: Acl, listed_owner: str | None, own: str, semantics: Semantics, cause: Reason) -> Iterator[AclView]:
    grants = [(grant, WAYS_OF.get(grant.permission)) for grant in acl.grants]
    unclear = any(ways is None for _, ways in grants)
    for owner, foreign in _owners(acl.owner or listed_owner, own):
        for full in (False, True) if unclear else (False,):
            sources = [
                Source(
                    _everyone(grant.grantee, semantics),
                    ways,
                    f"{grant.grantee} {grant.permission}",
                    assumed=cause if given is None else None,
                )
                for grant, given in grants
                if (ways := (CONTROL if full else 0) if given is None else given) and grant.grantee != own
            ]
            yield AclView(owner, (*_owner_source(owner, own, foreign, semantics), *sources), foreign)


def _owner_source(owner: str, own: str, foreign: bool, semantics: Semantics) -> tuple[Source, ...]:
    """Return the part of an ACL that gives access to the object's owner; () if the bucket's owner owns the object."""
    if owner == own and not foreign:
        return ()
    assumed = Reason(ReasonCode.OWNER_UNKNOWN) if owner == SOMEBODY else None
    return (Source(_everyone(owner, semantics), CONTROL, owner, owner=True, assumed=assumed),)


def _everyone(canonical_id: str, semantics: Semantics) -> str:
    """Return AllUsers for the anonymous user, because the anonymous user is everyone; return any other ID unchanged. On
    Ceph, return every ID unchanged, because anonymous uploads belong to the bucket's owner there.
    """
    return ALL_USERS if canonical_id == ANONYMOUS_OWNER and semantics is not Semantics.CEPH else canonical_id


def is_public_group(source: Source) -> bool:
    """True for a grant that IgnorePublicAcls disables: one to a public group. A grant to the anonymous user is none."""
    return source.grantee in PUBLIC_GROUPS and source.cause.startswith(source.grantee)
