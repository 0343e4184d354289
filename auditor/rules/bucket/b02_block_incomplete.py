"""B02: the public access block has gaps."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.bucket import PublicAccessBlock
from auditor.rules.base import Hit, Severity, rule


@rule("B02", "bucket-block-incomplete", Severity.HIGH, reads=("bucket.access_block",))
def check(bucket_access_block: PublicAccessBlock) -> Iterator[Hit]:
    """
    Why: the four switches protect the bucket when someone makes a mistake in a policy or an ACL.
    Flagged: a switch that is off for the bucket and for its account; the message names every such switch.
    Not flagged: a switch that is on at one of the two levels, because S3 applies the stricter setting.
    Blind to: grants to single accounts, which no switch stops; the account's switches behind a custom endpoint.
    Fix: turn on all four with PutPublicAccessBlock; for the whole account if nothing in it has to be public.
    """
    switches = {
        "BlockPublicAcls": bucket_access_block.block_public_acls,
        "IgnorePublicAcls": bucket_access_block.ignore_public_acls,
        "BlockPublicPolicy": bucket_access_block.block_public_policy,
        "RestrictPublicBuckets": bucket_access_block.restrict_public_buckets,
    }
    off = [name for name, on in switches.items() if not on]
    if off:
        yield Hit(f"the public access block is incomplete, off: {', '.join(off)}")
