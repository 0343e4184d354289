"""B05: someone other than the bucket's owner can change, fill, empty or list the bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from auditor.model.access import AudienceKind, ObjectAccess, Verdict
from auditor.model.bucket import AccessGrant
from auditor.model.object import ANONYMOUS_OWNER, Acl
from auditor.rules.base import Hit, Severity, rule
from auditor.verdict.control import Control, WriteGrants
from auditor.verdict.trust import Trust


class Power(NamedTuple):
    """A power over the bucket: the actions that give it, its words, its severity for strangers and for others."""

    name: str
    words: str
    strangers: Severity
    others: Severity
    actions: tuple[str, ...]


POWERS: Final = (
    Power(
        "control",
        "can change who has access to the bucket, or copy all of it",
        Severity.CRITICAL,
        Severity.HIGH,
        (
            "s3:PutBucketPolicy",
            "s3:DeleteBucketPolicy",
            "s3:PutBucketAcl",
            "s3:PutBucketPublicAccessBlock",
            "s3:PutBucketOwnershipControls",
            "s3:PutReplicationConfiguration",
        ),
    ),
    Power(
        "change",
        "can write or destroy objects",
        Severity.CRITICAL,
        Severity.MEDIUM,
        (
            "s3:PutObject",
            "s3:DeleteObject",
            "s3:DeleteObjectVersion",
            "s3:PutLifecycleConfiguration",
            "s3:PutBucketVersioning",
            "s3:BypassGovernanceRetention",
            "s3:DeleteBucket",
        ),
    ),
    Power("list", "can list the keys", Severity.HIGH, Severity.LOW, ("s3:ListBucket", "s3:ListBucketVersions")),
)
OF_ACL: Final = {"FULL_CONTROL": POWERS[0], "WRITE_ACP": POWERS[0], "WRITE": POWERS[1], "READ": POWERS[2]}
LOG_WRITER: Final = "c4c1ede66af53448b93c283ce9448c4ba468c9432aa01d700d3878632f77d2d0"
"""Canonical ID by which CloudFront writes its older logs; it needs FULL_CONTROL."""

SERVICES: Final = frozenset({AudienceKind.SERVICE, AudienceKind.SOURCE})
MOST_NAMED: Final = 100
"""Largest number of others that are named for one power."""
LONGEST: Final = 500
"""Largest number of characters of another's name."""


@rule(
    "B05",
    "bucket-others-control",
    Severity.HIGH,
    reads=("control", "bucket.acl", "bucket.owner", "trust", "write_grants"),
)
def check(
    control: Control, bucket_acl: Acl, bucket_owner: str, trust: Trust, write_grants: WriteGrants
) -> Iterator[Hit]:
    """
    Why: anyone who can change the policy or the ACL of the bucket can open every object in it; anyone who can write or
        delete can replace or destroy them; no object's verdict shows this.
    Flagged: strangers, and accounts, organizations, networks and other parties that are not trusted, if the bucket
        policy or the bucket's ACL lets them control the bucket (critical for strangers, otherwise high), write or
        destroy objects (critical, otherwise medium), or list the keys (high, otherwise low). Where a condition cannot
        be decided, the finding says "perhaps" (medium). Also principals of other accounts, and users and groups of the
        corporate directory, that are not trusted and have WRITE or READWRITE by a grant of S3 Access Grants (medium).
    Not flagged: reading of objects, which each object's verdict shows; AWS services (B20); the public groups of the ACL
        (B03); the owner's own account.
    Blind to: grants to S3 itself; IAM policies, also of the role behind an S3 Access Grant; access points; S3 Access
        Grants that were not read, which `not_looked_at` names; a Deny that covers only some of the keys.
    Fix: name fewer actions in the policy, remove the grant with PutBucketAcl or DeleteAccessGrant, or trust the other
        party.
    """
    for power in POWERS:
        yield from _by_policy(power, [control[action] for action in power.actions])
    for grant in bucket_acl.grants:
        held = OF_ACL.get(grant.permission)
        who = grant.grantee
        if held is None or who == bucket_owner or "://" in who or trust.canonical(who) is not None:
            continue
        if who == LOG_WRITER:
            yield Hit(f"the log delivery of CloudFront {held.words}", who, grant.permission, Severity.LOW)
            continue
        anyone = who == ANONYMOUS_OWNER
        words, severity = ("anyone on the internet", held.strangers) if anyone else ("another account", held.others)
        yield Hit(f"{words} {held.words}, through the bucket's ACL", who, grant.permission, severity)
    yield from _by_grants(POWERS[1], write_grants)


def _by_grants(power: Power, write_grants: WriteGrants) -> Iterator[Hit]:
    """Yield the hits for the parties that have the power by S3 Access Grants."""
    parties = list(write_grants)
    for party in parties[:MOST_NAMED]:
        by_permission: dict[str, list[AccessGrant]] = {}
        for grant in write_grants[party]:
            by_permission.setdefault(grant.permission.value, []).append(grant)
        for permission, grants in by_permission.items():
            first, more = grants[0], len(grants) - 1
            named = f"the S3 Access Grant {first.id} on {first.scope[:LONGEST]}{f' and {more:,} more' if more else ''}"
            yield Hit(f"another party {power.words}, through {named}", party[:LONGEST], permission, power.others)
    if len(parties) > MOST_NAMED:
        more = len(parties) - MOST_NAMED
        yield Hit(f"{more:,} more parties {power.words}, through S3 Access Grants", "others", "WRITE", power.others)


def _by_policy(power: Power, accesses: list[ObjectAccess]) -> Iterator[Hit]:
    """Yield the hits for the parties that have the power by the bucket policy."""
    exposed = [access for access in accesses if access.verdict is Verdict.EXPOSED]
    if exposed:
        anyone = any(access.strangers.startswith("anyone") for access in exposed)
        words = "anyone on the internet" if anyone else "any AWS account"
        yield Hit(f"{words} {power.words}", "anyone" if anyone else "any-account", power.name, power.strangers)
        return
    named = {one.text[:LONGEST]: None for access in accesses for one in access.audience if one.kind not in SERVICES}
    for text in list(named)[:MOST_NAMED]:
        yield Hit(f"another party {power.words}, through the bucket policy", text, power.name, power.others)
    if len(named) > MOST_NAMED:
        yield Hit(f"{len(named) - MOST_NAMED:,} more parties {power.words}", "others", power.name, power.others)
    if any(access.verdict is Verdict.UNKNOWN for access in accesses):
        severity = min(power.others, Severity.MEDIUM, key=[*reversed(Severity)].index)
        yield Hit(f"perhaps another party {power.words}: a condition is undecided", "unknown", power.name, severity)
