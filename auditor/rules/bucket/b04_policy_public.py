"""B04: the bucket policy is public."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.finding import Severity
from auditor.rules.base import Hit, rule


@rule(
    "B04",
    "bucket-policy-public",
    Severity.CRITICAL,
    reads=("bucket.policy_is_public", "bucket.policy", "bucket.restricts_public_policy"),
)
def check(bucket_policy_is_public: bool, bucket_policy: str, bucket_restricts_public_policy: bool) -> Iterator[Hit]:
    """
    Why: one statement of a public policy can open every object of the bucket at once.
    Flagged: S3 itself calls the policy public (GetBucketPolicyStatus); critical, or medium where RestrictPublicBuckets
        is known to be on, for the bucket or its account: it keeps strangers out until one call turns it off.
    Not flagged: a policy that opens the bucket to named accounts; no policy at all, whatever its status says (Ceph
        calls a bucket with a public ACL so).
    Blind to: what the policy allows, and to which keys: each object's verdict says so; policies of access points.
    Fix: name principals in the policy, or narrow it with a condition that S3 counts; turn on BlockPublicPolicy.
    """
    if not bucket_policy or not bucket_policy_is_public:
        return
    if bucket_restricts_public_policy:
        yield Hit("its policy is public; only RestrictPublicBuckets holds it back", severity=Severity.MEDIUM)
    else:
        yield Hit("its policy is public")
