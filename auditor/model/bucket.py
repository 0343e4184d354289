"""The facts of a bucket that affect each of its objects: owner, policy, ACL, public access block, encryption."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from auditor.model.object import Acl, Skipped, Unread
from auditor.model.policy import Policy, parse

NOT_GIVEN: Final = Skipped("it is not given")
"""The default of each bucket fact, for a Python program that makes BucketFacts without this fact. The fact then counts
as not asked for."""

MOST_KEYS: Final = 1000
"""The largest number of KMS keys whose policies a run reads."""
UNREAD_KEY: Final = Unread("GetKeyPolicy", "TooMany")
"""Stands for the policy of a further key."""

NOT_OURS: Final = Skipped("another account owns the bucket, and no call returns its number")
"""Stands for the number of the bucket's account, if the caller belongs to another account and so cannot find out."""


class PublicAccessBlock(Struct, frozen=True):
    """The four switches of S3's public access block (GetPublicAccessBlock), for a bucket, for an account, or for the
    two combined. A combined switch is on if either has it on.
    """

    block_public_acls: bool = False
    ignore_public_acls: bool = False
    block_public_policy: bool = False
    restrict_public_buckets: bool = False


class Encryption(Struct, frozen=True):
    """The bucket's default encryption (GetBucketEncryption). algorithm: None if there is none.

    blocked: the kinds of encryption that S3 refuses for new objects, such as SSE-C; NONE alone if a call unblocked all;
    None if the answer does not say, as for a bucket from before April 2026 (BlockedEncryptionTypes, S3 API reference).
    """

    algorithm: str | None = None
    kms_key_id: str | None = None
    bucket_key_enabled: bool = False
    blocked: tuple[str, ...] | None = None

    @property
    def blocks_customer_keys(self) -> bool | None:
        """True if S3 refuses uploads under a customer's key (SSE-C). None if the bucket does not say."""
        return None if self.blocked is None else SSE_C in self.blocked


SSE_C: Final = "SSE-C"
"""BlockedEncryptionTypes' name of encryption under a customer's key."""


class Semantics(StrEnum):
    """The kind of server that holds the bucket. The judge follows that server's rules of access."""

    AWS = "aws"
    CEPH = "ceph"
    """The Ceph object gateway (RGW): an Allow of the bucket policy reaches every object, whoever owns it."""
    OTHER = "other"
    """A server that is neither AWS nor Ceph. The judge follows AWS's rules; if the server lacks a call, the bucket does
    not have the setting of that call."""


class AccessPoint(Struct, frozen=True, kw_only=True):
    """One access point of the bucket (s3control GetAccessPoint, GetAccessPointPolicy, GetAccessPointPolicyStatus)."""

    arn: str
    account: str
    """Number of the account that owns the access point, 12 digits."""
    vpc: str | None = None
    """ID of the only VPC from which the access point takes requests; None if it takes requests from the internet."""
    public_access_block: PublicAccessBlock | Unread = PublicAccessBlock()
    policy: str | Unread = ""
    """The policy document as JSON text, "" if there is none."""
    policy_is_public: bool | Unread = False


SCHEME: Final = "s3://"
"""The begin of the path of an object, s3://BUCKET/KEY."""


class GranteeType(StrEnum):
    """The type of a grantee of S3 Access Grants (s3control, GranteeType)."""

    IAM = "IAM"
    DIRECTORY_USER = "DIRECTORY_USER"
    DIRECTORY_GROUP = "DIRECTORY_GROUP"


class GrantPermission(StrEnum):
    """The permission of a grant of S3 Access Grants (s3control, Permission)."""

    READ = "READ"
    WRITE = "WRITE"
    READWRITE = "READWRITE"


class AccessGrant(Struct, frozen=True, kw_only=True):
    """One grant of S3 Access Grants on objects of the bucket (s3control ListAccessGrants)."""

    id: str
    grantee_type: GranteeType
    grantee: str
    """ARN of an IAM user or role, or the UUID of a user or group of the corporate directory."""
    permission: GrantPermission
    scope: str
    """The S3 path of the granted objects, such as s3://BUCKET/PREFIX* or s3://BUCKET/KEY."""
    application: str | None = None
    """ARN of the only application through which the grantee gets in; None if there is no such limit."""

    @property
    def prefix(self) -> str | None:
        """The text with which the paths s3://BUCKET/KEY of the granted objects begin; None if the scope is the path of
        one object.

        s3://BUCKET/p* covers s3://BUCKET/p-other/key, too. A scope that ends with a slash, or has no key, counts as a
        prefix: it is a folder or a whole bucket (S3 User Guide, "Working with grants in S3 Access Grants").
        """
        text = re.split(r"[*?]", self.scope, maxsplit=1)[0]
        if text != self.scope or text.endswith("/"):
            return text
        return None if "/" in text.removeprefix(SCHEME) else f"{text}/"

    def is_on(self, bucket: str) -> bool:
        """True if the scope has paths of the bucket."""
        whole = f"{SCHEME}{bucket}/"
        return self.scope.startswith(whole) or whole.startswith(self.prefix or self.scope)


class AccessGrants(Struct, frozen=True, kw_only=True):
    """The S3 Access Grants on the bucket, in the account that owns it and in the bucket's Region."""

    account: str
    """Number of the account that owns the S3 Access Grants instance and the bucket, 12 digits."""
    instance: str | None = None
    """ARN of the S3 Access Grants instance; None if there is none, and so no grant."""
    grants: tuple[AccessGrant, ...] = ()
    """The grants on the bucket, sorted by ID, without those to IAM users and roles of the account itself."""
    policy: str | Unread = ""
    """The resource policy of the instance as JSON text, "" if there is none. It lets other accounts use the instance
    (s3control GetAccessGrantsInstanceResourcePolicy)."""


class BucketFacts(Struct, frozen=True, kw_only=True):
    """The settings of one bucket, which a run reads once, before the objects."""

    bucket: str
    region: str | Unread | Skipped = NOT_GIVEN
    owner: str | Unread | Skipped = NOT_GIVEN
    """Canonical ID of the bucket's owner."""
    own_id: str | Unread | Skipped = NOT_GIVEN
    """Canonical ID of the caller."""
    account: str | Unread | Skipped = NOT_GIVEN
    """Number of the caller's account, 12 digits."""
    ownership: str | Unread | Skipped = NOT_GIVEN
    """Object Ownership: BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter, which is also that of a bucket
    without this setting.
    """
    public_access_block: PublicAccessBlock | Unread | Skipped = NOT_GIVEN
    account_public_access_block: PublicAccessBlock | Unread | Skipped = NOT_GIVEN
    acl: Acl | Unread | Skipped = NOT_GIVEN
    policy_is_public: bool | Unread | Skipped = NOT_GIVEN
    policy: str | Unread | Skipped = NOT_GIVEN
    """The policy document as JSON text, "" if there is none."""
    versioning: str | Unread | Skipped = NOT_GIVEN
    """State of the bucket's versioning: Enabled, Suspended or Never."""
    encryption: Encryption | Unread | Skipped = NOT_GIVEN
    request_payer: str | Unread | Skipped = NOT_GIVEN
    """The party that pays for requests: BucketOwner or Requester."""
    semantics: Semantics = Semantics.AWS
    lacking: tuple[str, ...] = ()
    """The calls that the server does not have, sorted. The settings behind these calls have the values of a bucket on
    which they were never set. AWS's own server lacks no call."""
    access_points: tuple[AccessPoint, ...] | Unread | Skipped = NOT_GIVEN
    """The access points of the bucket that belong to the bucket's own account."""
    abac: bool | Unread | Skipped = NOT_GIVEN
    """True if attribute-based access control is on (GetBucketAbac), so that conditions see the bucket's tags."""
    tags: Mapping[str, str | None] | Unread | Skipped = NOT_GIVEN
    """The bucket's tags for which a condition of the bucket policy asks: each tag's value by its key; None for a tag
    that the bucket does not have. It has no other tags of the bucket."""
    access_grants: AccessGrants | Unread | Skipped = NOT_GIVEN
    """The S3 Access Grants on the bucket that belong to the bucket's own account."""
    key_policies: Mapping[str, str | Unread] | Skipped = NOT_GIVEN
    """The policies of KMS keys as JSON text, by the key's ARN or ID as HEAD names it."""

    @property
    def owner_account(self) -> str | Unread | Skipped:
        """Number of the account that owns the bucket. It is known only if that is the caller's own account.

        Of several facts that could not be read, the caller's account comes first: without it no other fact helps.
        """
        if isinstance(self.owner, str) and isinstance(self.own_id, str) and self.owner != self.own_id:
            return NOT_OURS
        facts = (self.account, self.owner, self.own_id)
        unread = next((fact for fact in facts if isinstance(fact, Unread)), None)
        return unread or next((fact for fact in facts if not isinstance(fact, str)), self.account)

    @property
    def parsed_policy(self) -> Policy | Unread | Skipped:
        """The bucket policy's statements. A policy that cannot be parsed counts as not read."""
        if not isinstance(self.policy, str):
            return self.policy
        return _parsed(self.policy)

    @property
    def policy_status(self) -> bool | Unread | Skipped:
        """True if S3 calls the policy public. The answer of a server other than AWS does not count, because it may be
        wrong either way.
        """
        return self.policy_is_public if self.semantics is Semantics.AWS else False

    @property
    def default_encryption(self) -> Encryption | Unread | Skipped:
        """The default encryption. If a server other than AWS does not answer the call, the bucket has no default
        encryption.
        """
        if isinstance(self.encryption, Unread) and self.semantics is not Semantics.AWS:
            return Skipped("this server does not report default encryption")
        return self.encryption

    @property
    def access_block(self) -> PublicAccessBlock | Unread:
        """The public access block in force: a switch is on if it is on for the bucket or for its account.

        If the block of the bucket or of the account was not asked for, its switches count as off. If one of the two
        blocks could not be read, the result is its Unread, unless the other block has all four switches on.
        """
        levels = (self.public_access_block, self.account_public_access_block)
        known = [level for level in levels if isinstance(level, PublicAccessBlock)]
        union = PublicAccessBlock(
            any(level.block_public_acls for level in known),
            any(level.ignore_public_acls for level in known),
            any(level.block_public_policy for level in known),
            any(level.restrict_public_buckets for level in known),
        )
        if union == PublicAccessBlock(True, True, True, True):
            return union
        return next((level for level in levels if isinstance(level, Unread)), union)

    @property
    def ignores_public_acls(self) -> bool:
        """True if IgnorePublicAcls is on for bucket or account. A setting that could not be read counts as off."""
        levels = (self.public_access_block, self.account_public_access_block)
        return any(isinstance(level, PublicAccessBlock) and level.ignore_public_acls for level in levels)

    @property
    def restricts_public_policy(self) -> bool:
        """True if RestrictPublicBuckets is on for bucket or account. A setting that could not be read counts as off.
        Ceph's setting counts as off too: Ceph 16.2 stores the switch, but still lets everyone in.
        """
        if self.semantics is Semantics.CEPH:
            return False
        levels = (self.public_access_block, self.account_public_access_block)
        return any(isinstance(level, PublicAccessBlock) and level.restrict_public_buckets for level in levels)


BUCKET_OWNER_ENFORCED: Final = "BucketOwnerEnforced"


@lru_cache(4)
def _parsed(text: str) -> Policy | Unread:
    """Return the parsed policy; Unread if the text is malformed. A run asks for the same policy several times."""
    try:
        return parse(text)
    except ValueError:
        return Unread("GetBucketPolicy", "Malformed")
