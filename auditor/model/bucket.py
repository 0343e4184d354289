"""The facts of a bucket that affect each of its objects: owner, policy, ACL, public access block, encryption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from auditor.model.object import Acl, Skipped, Unread

NOT_GIVEN: Final = Skipped("it is not given")
"""The default of each bucket fact: a Python program that made the BucketFacts did not give this one. The fact then
counts as not asked for.
"""


@dataclass(frozen=True, slots=True)
class PublicAccessBlock:
    """The four switches of S3's public access block (GetPublicAccessBlock), for a bucket, for an account, or for the
    two combined. A combined switch is on if either has it on.
    """

    block_public_acls: bool = False
    ignore_public_acls: bool = False
    block_public_policy: bool = False
    restrict_public_buckets: bool = False


@dataclass(frozen=True, slots=True)
class Encryption:
    """The bucket's default encryption (GetBucketEncryption). algorithm: None if there is none."""

    algorithm: str | None = None
    kms_key_id: str | None = None
    bucket_key_enabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFacts:
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
    """The one who pays for requests: BucketOwner or Requester."""

    @property
    def access_block(self) -> PublicAccessBlock | Unread:
        """The public access block in force: a switch is on if it is on for the bucket or for its account.

        If the block of the bucket or of the account was not asked for, its switches count as off. If one of the two
        blocks could not be read, the result is the Unread in its place, unless the other block has all four switches
        on.
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
        """True if RestrictPublicBuckets is on for bucket or account. A setting that could not be read counts as off."""
        levels = (self.public_access_block, self.account_public_access_block)
        return any(isinstance(level, PublicAccessBlock) and level.restrict_public_buckets for level in levels)


BUCKET_OWNER_ENFORCED: Final = "BucketOwnerEnforced"
