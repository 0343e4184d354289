"""The facts of a bucket that bear on each of its objects: who owns it, and what it lets through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from auditor.model.object import Acl, Skipped, Unread


@dataclass(frozen=True, slots=True)
class PublicAccessBlock:
    """The four switches of GetPublicAccessBlock, of a bucket or of an account, or the union of both."""

    block_public_acls: bool = False
    ignore_public_acls: bool = False
    block_public_policy: bool = False
    restrict_public_buckets: bool = False


@dataclass(frozen=True, slots=True)
class Encryption:
    """GetBucketEncryption's default; algorithm None: the bucket has no default encryption."""

    algorithm: str | None = None
    kms_key_id: str | None = None
    bucket_key_enabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFacts:
    """What is read of the bucket, once a run, before its objects.

    owner: canonical ID of the bucket's owner. own_id, account: the caller's canonical ID and 12-digit account.
    ownership: BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter (also where none was ever set).
    policy: the policy document as JSON text, "" where there is none. versioning: Enabled, Suspended or Never.
    request_payer: BucketOwner or Requester.
    """

    bucket: str
    region: str | Unread | Skipped
    owner: str | Unread | Skipped
    own_id: str | Unread | Skipped
    account: str | Unread | Skipped
    ownership: str | Unread | Skipped
    public_access_block: PublicAccessBlock | Unread | Skipped
    account_public_access_block: PublicAccessBlock | Unread | Skipped
    acl: Acl | Unread | Skipped
    policy_is_public: bool | Unread | Skipped
    policy: str | Unread | Skipped
    versioning: str | Unread | Skipped
    encryption: Encryption | Unread | Skipped
    request_payer: str | Unread | Skipped

    @property
    def access_block(self) -> PublicAccessBlock | Unread:
        """Bucket and account level together, the stricter of each switch.

        A skipped level counts as open. With one level unread the union is still known where the other has all four on.
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
        """IgnorePublicAcls is *known* to be on, at one level at least."""
        levels = (self.public_access_block, self.account_public_access_block)
        return any(isinstance(level, PublicAccessBlock) and level.ignore_public_acls for level in levels)

    @property
    def restricts_public_policy(self) -> bool:
        """RestrictPublicBuckets is *known* to be on, at one level at least."""
        levels = (self.public_access_block, self.account_public_access_block)
        return any(isinstance(level, PublicAccessBlock) and level.restrict_public_buckets for level in levels)


BUCKET_OWNER_ENFORCED: Final = "BucketOwnerEnforced"
