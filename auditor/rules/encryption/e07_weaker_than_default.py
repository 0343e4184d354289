"""E07: the object's encryption is weaker than the bucket's default, or under another key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.bucket import Encryption
from auditor.rules.base import Hit, Severity, rule

STRENGTH: Final = {"AES256": 1, "aws:kms": 2, "aws:kms:dsse": 3}


@rule(
    "E07",
    "encryption-below-default",
    Severity.LOW,
    reads=("head.server_side_encryption", "head.sse_kms_key_id", "bucket.default_encryption"),
)
def check(
    head_server_side_encryption: str | None, head_sse_kms_key_id: str | None, bucket_default_encryption: Encryption
) -> Iterator[Hit]:
    """
    Why: a new default reaches new uploads only; the objects from before stay as they are, and no setting shows them.
    Flagged: SSE-S3 where the default is a KMS key; one layer where the default is two; another KMS key than the default
        key.
    Not flagged: stronger encryption than the default; no encryption by S3 (E01); a customer's key (E06); a kind that is
        newer than this rule.
    Blind to: the default key where the bucket names it by an alias, or leaves the choice to S3; servers without
        default encryption.
    Fix: copy the object over itself (many of them with S3 Batch Operations); S3 uses the default for the copy.
    """
    mine, wanted = (
        STRENGTH.get(kind or "", 0) for kind in (head_server_side_encryption, bucket_default_encryption.algorithm)
    )
    if not mine or not wanted:
        return
    if mine < wanted:
        yield Hit("its encryption is weaker than the bucket's default")
    elif mine == wanted > 1 and _differ(head_sse_kms_key_id, bucket_default_encryption.kms_key_id):
        yield Hit("its KMS key is not the bucket's default key")


def _differ(key: str | None, default: str | None) -> bool:
    """True if the two name different KMS keys for certain: each by its ARN or its ID, and neither by an alias."""
    if not key or not default or "alias/" in key or "alias/" in default:
        return False
    if key.startswith("arn:") and default.startswith("arn:"):
        return key != default
    return key.rpartition("/")[2] != default.rpartition("/")[2]
