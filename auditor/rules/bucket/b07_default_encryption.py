"""B07: the bucket has no default encryption, or one that calls KMS for every object."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.bucket import Encryption
from auditor.rules.base import Hit, Severity, rule


@rule("B07", "bucket-default-encryption", Severity.MEDIUM, reads=("bucket.default_encryption",))
def check(bucket_default_encryption: Encryption) -> Iterator[Hit]:
    """
    Why: without a default, an upload that does not ask for encryption stays unencrypted; with a KMS key but no bucket
        key, every read and write calls KMS, which costs money and can be throttled.
    Flagged: no default encryption (medium); SSE-KMS without a bucket key (low).
    Not flagged: SSE-S3, which is AWS's own default; DSSE-KMS, which cannot have a bucket key.
    Blind to: the encryption of the objects (E01, E07); servers that have no default encryption at all.
    Fix: set a default with PutBucketEncryption, and BucketKeyEnabled with it.
    """
    if not bucket_default_encryption.algorithm:
        yield Hit("the bucket has no default encryption")
    elif bucket_default_encryption.algorithm == "aws:kms" and not bucket_default_encryption.bucket_key_enabled:
        yield Hit("its default encryption is SSE-KMS without a bucket key", severity=Severity.LOW)
