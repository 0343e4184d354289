"""The access to an object: its verdict, each audience that gets in, and the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from msgspec import Struct


class Verdict(StrEnum):
    """The widest audience that can reach one object today, the widest first. If several apply, the first counts."""

    EXPOSED = "exposed"
    UNKNOWN = "unknown"
    SHARED = "shared"
    MASKED = "masked"
    DORMANT = "dormant"
    """Nobody gets in today, as with a private object; an S3 Inventory shows a hidden part of the stored ACL that opens
    the object again once ACLs count. No call shows that part."""
    PRIVATE = "private"


def told_verdicts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts by verdict that a report tells its reader: without `dormant` where there is no such object, for
    only an S3 Inventory shows them.
    """
    return {verdict: number for verdict, number in counts.items() if number or verdict != Verdict.DORMANT}


class AudienceKind(StrEnum):
    """The kind of an audience: requesters that do not belong to the bucket's owner or to a trusted party."""

    ANYONE = "anyone"
    """Any request from the internet, even an unsigned one. It has no name."""
    ANY_ACCOUNT = "any-account"
    """Any AWS account, or any user of the server, by a signed request. It has no name."""
    ACCOUNT = "account"
    """An AWS account by its 12 digits, or one of its principals by its ARN."""
    CANONICAL_ID = "canonical-id"
    """An account or an origin access identity of which only the canonical ID is known."""
    ORGANIZATION = "organization"
    """An AWS organization, such as o-a1b2c3d4e5, or a path in one."""
    NETWORK = "network"
    """The addresses of a network, in CIDR notation."""
    VPC = "vpc"
    """A VPC by its ID, or the VPCs of an account by a pattern of ARNs."""
    VPC_ENDPOINT = "vpc-endpoint"
    """A VPC endpoint by its ID."""
    VPC_ACCOUNT = "vpc-account"
    """Requests through the VPC endpoints of an AWS account, by its 12 digits."""
    VPC_ORGANIZATION = "vpc-organization"
    """Requests through the VPC endpoints of an AWS organization, by its ID."""
    SERVICE = "service"
    """An AWS service by its principal, such as logging.s3.amazonaws.com. It acts for any customer, or for a source that
    the name leaves out."""
    SOURCE = "source"
    """An AWS service that acts for one resource or account, by its ARN or its 12 digits, such as a CloudFront
    distribution."""
    ACCESS_POINT = "access-point"
    """The users that an access point of the bucket lets in, by its ARN."""
    ACCESS_GRANTS = "access-grants"
    """The grantees of an S3 Access Grants instance, by its ARN; `*` is any instance that no policy names."""
    IDENTITY_PROVIDER = "identity-provider"
    """The users of an identity provider, by its name or ARN."""
    GROUP = "group"
    """A group in an ACL other than the two public ones, by its URI, such as LogDelivery."""
    DIRECTORY_USER = "directory-user"
    """A user of the corporate directory behind S3 Access Grants, by UUID."""
    DIRECTORY_GROUP = "directory-group"
    """A group of the corporate directory behind S3 Access Grants, by UUID."""


class Audience(Struct, frozen=True):
    """One audience of an object: outside requesters that can reach it. name: None for the two kinds without a name.
    through: the only way on which the audience gets in, such as "network 203.0.113.0/24" or "header aws:Referer"; None
    if there is no such limit.
    """

    kind: AudienceKind
    name: str | None = None
    through: str | None = None

    @property
    def text(self) -> str:
        """The audience in one string: "anyone", "account 444455556666", "organization o-1 through vpc-endpoint vpce-1".
        Object lines and the summary have it in this form.
        """
        named = self.kind.value if self.name is None else f"{self.kind.value} {self.name}"
        return named if self.through is None else f"{named} through {self.through}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the audience that `text` names in the form of Audience.text. Raises ValueError for another text."""
        named, _, through = text.partition(" through ")
        kind, _, name = named.partition(" ")
        return cls(AudienceKind(kind), name or None, through or None)


class ReasonCode(StrEnum):
    """The stable codes of reasons. Each code names one fact that opens, hides or closes an object, or that leaves its
    verdict undecided.
    """

    # It opens.
    ACL_GRANT = "acl-grant"
    """A grant of the object's ACL. Cause: GRANTEE PERMISSION."""
    OBJECT_OWNER = "object-owner"
    """Another account owns the object. Cause: the owner's canonical ID."""
    POLICY_ALLOW = "policy-allow"
    """A statement of the bucket policy allows it. Cause: the statement's Sid, or "#" and its number."""
    ACCESS_POINT = "access-point"
    """An access point of the bucket lets requests in. Cause: its ARN."""
    ACCESS_GRANT = "access-grant"
    """A grant of S3 Access Grants hands out credentials of a role of the bucket owner's account. Cause: the grant's
    ID."""
    # It hides: without it, an audience would get in.
    POLICY_DENY = "policy-deny"
    """A statement of the bucket policy denies it. Cause: as for policy-allow."""
    IGNORE_PUBLIC_ACLS = "ignore-public-acls"
    """The switch IgnorePublicAcls is on. Cause: "bucket" or "account"."""
    RESTRICT_PUBLIC_BUCKETS = "restrict-public-buckets"
    """RestrictPublicBuckets is on, and the policy is public. Cause: "bucket", "account" or "access point ARN"."""
    KMS_KEY = "kms-key"
    """The object's KMS key keeps requests out. Cause: the key's ARN or ID."""
    CUSTOMER_KEY = "customer-key"
    """Only the uploader has the object's key (SSE-C)."""
    REQUESTER_PAYS = "requester-pays"
    """The requester pays, so unsigned requests are refused."""
    TRUSTED = "trusted"
    """Only trusted audiences get in. Cause: the entry of `trusted`."""
    # It closes for good.
    ACLS_DISABLED = "acls-disabled"
    """BucketOwnerEnforced: ACLs do not count."""
    NOT_BUCKET_OWNED = "not-bucket-owned"
    """An Allow of the bucket policy does not reach the object, because another account owns it. Cause: as for
    policy-allow."""
    ENDED = "ended"
    """The dates of an Allow of the bucket policy are past, or still to come. Cause: as for policy-allow."""
    # It is stored, and counts for nothing today.
    STORED_GRANT = "stored-grant"
    """A grant of the stored ACL, hidden today, takes effect again once ACLs apply. Cause: GRANTEE PERMISSION."""
    STORED_OWNER = "stored-owner"
    """The stored ACL names another owner, who owns the object again once ACLs apply. Cause: the owner's canonical
    ID."""
    # It is not known.
    ACL_UNREAD = "acl-unread"
    """The ACL was not read. Cause: the error code, or "skipped"."""
    POLICY_UNREAD = "policy-unread"
    """The bucket policy was not read, or cannot be parsed. Cause: the error code."""
    KEY_UNKNOWN = "key-unknown"
    """A condition tests a key whose value is not known. Cause: the key, such as s3:ExistingObjectTag/public."""
    ACCESS_POINTS_UNREAD = "access-points-unread"
    """The bucket policy delegates to access points, which were not read. Cause: the error code, or "skipped"."""
    BUCKET_TAGS_UNREAD = "bucket-tags-unread"
    """A condition tests a tag of the bucket, and the tags, or whether ABAC is on, were not read. Cause: the error code,
    or "skipped"."""
    KMS_KEY_UNREAD = "kms-key-unread"
    """The verdict depends on the policy of the object's KMS key, which was not read. Cause: the key's ARN or ID."""
    OWNER_UNKNOWN = "owner-unknown"
    """The canonical ID or account of the bucket's owner is not known."""
    TOO_COMPLEX = "too-complex"
    """The policy is too large to judge exactly. Cause: the number and its limit, such as "1,200,004 steps, at most
    1,200,000"."""
    # It is not named.
    MORE_AUDIENCES = "more-audiences"
    """More audiences get in than the line names. Cause: how many more."""


class Reason(Struct, frozen=True):
    """One reason of an object's access. cause: the grant, statement, switch, key or error code that made the reason;
    None if the reason's code needs none.
    """

    code: ReasonCode
    cause: str | None = None

    @property
    def text(self) -> str:
        """The reason in one string: "acls-disabled", "policy-allow: PublicRead". Object lines have it in this form."""
        return self.code.value if self.cause is None else f"{self.code.value}: {self.cause}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the reason that `text` names in the form of Reason.text. Raises ValueError for another text."""
        code, _, cause = text.partition(": ")
        return cls(ReasonCode(code), cause or None)


class ObjectAccess(Struct, frozen=True, cache_hash=True):
    """The access to one object version: the verdict, each audience that gets in, and the reasons. An audience is listed
    only if no wider one contains it.

    A judge gives objects with equal access the same ObjectAccess, so that a run makes few of them. The cache of object
    lines uses the access as its key, so its hash is computed only once.
    """

    verdict: Verdict
    audience: tuple[Audience, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def more(self) -> int:
        """How many more audiences get in than `audience` names; at least 1 if a reason says that there are more."""
        causes = [(one.cause or "").replace(",", "") for one in self.reasons if one.code is ReasonCode.MORE_AUDIENCES]
        return sum(int(cause) if cause.isdecimal() else 1 for cause in causes)

    @property
    def strangers(self) -> str:
        """The strangers that an exposed object lets in, in words: anyone on the internet, or any AWS account."""
        signed = self.audience and all(one.kind is not AudienceKind.ANYONE for one in self.audience)
        return "any AWS account" if signed else "anyone on the internet"
