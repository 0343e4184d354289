"""E04: the object is encrypted under a KMS key of another account."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from auditor.rules.base import Hit, Severity, rule
from auditor.verdict.trust import Trust

ACCOUNT: Final = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:([0-9]{12}):")


@rule(
    "E04",
    "encryption-foreign-key",
    Severity.MEDIUM,
    reads=("head.sse_kms_key_id", "bucket.owner_account", "trust"),
)
def check(head_sse_kms_key_id: str | None, bucket_owner_account: str, trust: Trust) -> Iterator[Hit]:
    """
    Why: the other account can disable or delete its key, and the object is then lost to its owner.
    Flagged: a KMS key whose ARN names an account other than the bucket's, and not a trusted one.
    Not flagged: keys of the bucket's own account; objects that are not encrypted under a KMS key.
    Blind to: keys that AWS manages, and keys without an ARN, as other servers name them; the account of a bucket that
        is not the caller's, where the rule is left out.
    Fix: copy the object over itself with a key of the bucket's account, or trust the other account.
    """
    found = ACCOUNT.match(head_sse_kms_key_id or "")
    if found and found[1] != bucket_owner_account and trust.principal("AWS", found[1]) is None:
        yield Hit(f"its KMS key belongs to account {found[1]}")
