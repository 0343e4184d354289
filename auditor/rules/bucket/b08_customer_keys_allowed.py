"""B08: the bucket accepts uploads under a customer's key (SSE-C) again."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.bucket import Encryption
from auditor.rules.base import Hit, Severity, rule


@rule("B08", "bucket-customer-keys-allowed", Severity.MEDIUM, reads=("bucket.default_encryption",))
def check(bucket_default_encryption: Encryption) -> Iterator[Hit]:
    """
    Why: S3 has refused uploads under a customer's key in new buckets since April 2026. Whoever removes this block can
        overwrite the objects with a key that nobody else has, as ransomware does.
    Flagged: the bucket names the encryption types that it blocks, and SSE-C is not among them (NONE, for example). If
        the last run saw SSE-C blocked, the finding counts as worsened.
    Not flagged: SSE-C is blocked; the bucket names no types, like one from before April 2026: `not_looked_at` says so.
    Blind to: a bucket policy that refuses SSE-C; objects under a customer's key (E06).
    Fix: block SSE-C with PutBucketEncryption (BlockedEncryptionTypes), and find out who unblocked it (CloudTrail).
    """
    if bucket_default_encryption.blocks_customer_keys is False:
        yield Hit("uploads under a customer's key (SSE-C) are allowed: the block that S3 sets by default was removed")
