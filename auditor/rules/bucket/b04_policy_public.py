"""B04: the bucket policy is public."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.access import Verdict
from auditor.model.bucket import Semantics
from auditor.model.policy import Policy
from auditor.rules.base import Hit, Severity, rule
from auditor.verdict.control import Control
from auditor.verdict.public import is_public


@rule(
    "B04",
    "bucket-policy-public",
    Severity.CRITICAL,
    reads=(
        "bucket.policy_status",
        "bucket.parsed_policy",
        "bucket.restricts_public_policy",
        "bucket.semantics",
        "control",
    ),
)
def check(
    bucket_policy_status: bool,
    bucket_parsed_policy: Policy,
    bucket_restricts_public_policy: bool,
    bucket_semantics: Semantics,
    control: Control,
) -> Iterator[Hit]:
    """
    Why: one statement of a public policy can open every object of the bucket at once.
    Flagged: a policy that S3 itself calls public (GetBucketPolicyStatus); on another server, a policy that lets
        strangers read, list, write or control. The severity is critical, or medium where RestrictPublicBuckets is known
        to be on, for the bucket or its account, and so keeps strangers out.
    Not flagged: a policy that opens the bucket to named accounts; a bucket without a policy, even if its status is
        public; the status from a server other than AWS (Ceph calls some policies public that name only users, and
        others private that anyone can get around).
    Blind to: the actions and keys that the policy allows, which each object's verdict shows; policies of access points.
    Fix: name the principals in the policy, or add a condition that S3 counts as narrow; turn on BlockPublicPolicy.
    """
    if not bucket_parsed_policy.statements:
        return
    if bucket_semantics is Semantics.AWS:
        public = open_now = bucket_policy_status
    else:
        open_now = any(access.verdict is Verdict.EXPOSED for access in control.values())
        public = open_now or is_public(bucket_parsed_policy, semantics=bucket_semantics)
    if bucket_restricts_public_policy and public:
        yield Hit("its policy is public; only RestrictPublicBuckets holds it back", severity=Severity.MEDIUM)
    elif open_now:
        yield Hit("its policy is public")
