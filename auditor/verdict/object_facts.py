"""The facts of one object that decide its access: who owns it, who has grants, and which key encrypts it.

S3 Access Grants give outsiders credentials of a role of the bucket owner's account (S3 User Guide, "S3 Access Grants
concepts"). So a request with them is one of this role: an Allow of the bucket policy is not needed,
RestrictPublicBuckets lets it through, and a Deny counts if it is for the role. The role is not known. A Deny therefore
closes only if it is for each role of the account. The role's own policies, and its rights to KMS keys, are not looked
at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from auditor.model.access import AudienceKind, Reason, ReasonCode
from auditor.model.bucket import (
    BUCKET_OWNER_ENFORCED,
    SCHEME,
    AccessGrant,
    AccessGrants,
    BucketFacts,
    GranteeType,
    GrantPermission,
    Semantics,
)
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, PUBLIC_GROUPS, Acl, Head, Skipped, Unread
from auditor.verdict.places import INTERNET
from auditor.verdict.principals import Party, party_of
from auditor.verdict.trust import Trust
from auditor.verdict.trusted_party import trusting_entry
from auditor.verdict.ways import CONTROL, READ, READ_ACP, WAYS_OF, WRITE_ACP

SOMEBODY: Final = "?"
"""Stands for the canonical ID of an account that is not known."""

_WAYS_OF_GRANT: Final = {
    GrantPermission.READ: READ | READ_ACP,
    GrantPermission.WRITE: WRITE_ACP,
    GrantPermission.READWRITE: READ | READ_ACP | WRITE_ACP,
}
"""The ways that each permission of a grant allows: the actions of the role that AWS gives as an example (S3 User Guide,
"Register a location")."""

_KINDS: Final = {
    GranteeType.DIRECTORY_USER: AudienceKind.DIRECTORY_USER,
    GranteeType.DIRECTORY_GROUP: AudienceKind.DIRECTORY_GROUP,
}


class EncryptionFacts(NamedTuple):
    """The encryption key that a reader of an object's bytes needs. kms: ARN or ID of the KMS key; "" if HEAD does not
    name it, None if there is no KMS key. customer: True for SSE-C, whose key only the uploader has.
    """

    kms: str | None = None
    customer: bool = False

    @classmethod
    def of(cls, head: Head | Unread | Skipped, semantics: Semantics) -> EncryptionFacts:
        """Return the encryption key that the HEAD names; no key if the HEAD was not read."""
        if not isinstance(head, Head):
            return cls(customer=isinstance(head, Unread) and head.code == "SSE-C")
        if head.sse_customer_algorithm:
            return cls(customer=True)
        if (head.server_side_encryption or "").startswith("aws:kms") and semantics is not Semantics.CEPH:
            return cls(kms=head.sse_kms_key_id or "")
        return _NO_KEY


_NO_KEY: Final = EncryptionFacts()
"""Most objects share it."""


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


class GrantedParty(NamedTuple):
    """One grantee. reason: the grant that lets the grantee in. trusted: the entry of the setting `trusted` that makes
    the grantee an insider.
    """

    party: Party
    reason: Reason
    trusted: str | None


Granted = Mapping[Party, list[GrantedParty]]
"""The grantees that have access to an object, by the holder of credentials with the ways of their permission."""


class GrantsOfBucket:
    """The grants on one bucket, by the keys that they cover. read: False if they are not known."""

    def __init__(self, facts: BucketFacts, trust: Trust) -> None:
        self._bucket = facts.bucket
        self._start = f"{SCHEME}{facts.bucket}/"
        self._objects: dict[str, list[tuple[Party, GrantedParty]]] = {}
        self._prefixes: dict[str, list[tuple[Party, GrantedParty]]] = {}
        found = facts.access_grants
        self.read = isinstance(found, AccessGrants)
        if isinstance(found, AccessGrants):
            for grant in found.grants:
                self._add(grant, found, trust)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def _add(self, grant: AccessGrant, of: AccessGrants, trust: Trust) -> None:
        party = grantee_of(grant)
        if party.account == of.account or not grant.is_on(self._bucket):
            return
        ways = _WAYS_OF_GRANT[grant.permission]
        holder = Party(AudienceKind.ACCOUNT, of.account, account=of.account, free=True, vended=ways, grants=of.instance)
        granted = GrantedParty(party, Reason(ReasonCode.ACCESS_GRANT, grant.id), trusting_entry(trust, party, INTERNET))
        if (prefix := grant.prefix) is None:
            self._objects.setdefault(grant.scope, []).append((holder, granted))
        else:
            # A prefix of the bucket's own path, such as s3://*, covers the whole bucket.
            whole = prefix if prefix.startswith(self._start) else self._start
            self._prefixes.setdefault(whole, []).append((holder, granted))

    def scopes_of(self, key: str) -> tuple[str, ...]:
        """Return the scopes of grants that cover the object's key: its own path, and prefixes of it. Objects with the
        same scopes have the same grantees.
        """
        if not self._objects and not self._prefixes:
            return ()
        path = self._start + key
        found = (path[:length] for length in self._lengths if length <= len(path))
        prefixes = tuple(one for one in found if one in self._prefixes)
        return (*prefixes, f"={path}") if path in self._objects else prefixes

    def of(self, scopes: Iterable[str]) -> Granted:
        """Return the grantees with access to the objects of these scopes, which scopes_of() returned."""
        found: dict[Party, list[GrantedParty]] = {}
        for scope in scopes:
            exact = scope.startswith("=")
            for holder, granted in self._objects[scope[1:]] if exact else self._prefixes[scope]:
                found.setdefault(holder, []).append(granted)
        return found


def grantee_of(grant: AccessGrant) -> Party:
    """Return the party that a grant names."""
    if grant.grantee_type is GranteeType.IAM:
        return party_of("AWS", grant.grantee) or Party(AudienceKind.ACCOUNT, grant.grantee, arn=grant.grantee)
    return Party(_KINDS[grant.grantee_type], grant.grantee)
