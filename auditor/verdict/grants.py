"""S3 Access Grants: for each object's key, the outsiders that a grant gives credentials.

The credentials are those of a role of the bucket owner's account (S3 User Guide, "S3 Access Grants concepts"). So a
request with them is one of this role: an Allow of the bucket policy is not needed, RestrictPublicBuckets lets it
through, and a Deny counts if it is for the role. The role is not known. A Deny therefore closes only if it is for each
role of the account. The role's own policies, and its rights to KMS keys, are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from auditor.model.access import AudienceKind, Reason, ReasonCode
from auditor.model.bucket import SCHEME, AccessGrant, AccessGrants, BucketFacts, GranteeType, GrantPermission
from auditor.verdict.places import INTERNET
from auditor.verdict.principals import Party, party_of
from auditor.verdict.trust import Trust
from auditor.verdict.trusted_party import trusting_entry
from auditor.verdict.ways import READ, READ_ACP, WRITE_ACP

WAYS_OF: Final = {
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
        ways = WAYS_OF[grant.permission]
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
