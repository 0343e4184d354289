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
    Flagged: a policy that S3 itself calls public (GetBucketPolicyStatus). The severity is critical; it is medium where
        RestrictPublicBuckets is known to be on, for the bucket or its account, and so keeps strangers out.
    Not flagged: a policy that opens the bucket to named accounts; a bucket without a policy, even if its status is
        public (Ceph says so of a bucket with a public ACL).
    Blind to: the actions and keys that the policy allows, which each object's verdict shows; policies of access points.
    Fix: name the principals in the policy, or add a condition that S3 counts as narrow; turn on BlockPublicPolicy.
    """
    if not bucket_policy or not bucket_policy_is_public:
        return
    if bucket_restricts_public_policy:
        yield Hit("its policy is public; only RestrictPublicBuckets holds it back", severity=Severity.MEDIUM)
    else:
        yield Hit("its policy is public")
