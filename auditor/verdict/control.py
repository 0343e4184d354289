"""Find who may use the actions on a bucket that no verdict of an object shows: change its policy, write, delete, list.

Each action is judged like the reading of an object. The statements that cover the action are taken as statements on
reading, and the engine says who gets in. So parties, conditions, Denies and trusted entries count as they do for
objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from auditor.model.access import ObjectAccess, Verdict
from auditor.model.bucket import (
    BUCKET_OWNER_ENFORCED,
    SCHEME,
    AccessGrant,
    AccessGrants,
    BucketFacts,
    GranteeType,
    GrantPermission,
)
from auditor.model.object import Skipped, Unread
from auditor.model.policy import Policy, Statement
from auditor.verdict.audience import audience_of
from auditor.verdict.engine import AccessEngine
from auditor.verdict.object_facts import EncryptionFacts, grantee_of, views
from auditor.verdict.places import INTERNET
from auditor.verdict.resources import cover_of
from auditor.verdict.steps import Steps
from auditor.verdict.trust import Trust
from auditor.verdict.trusted_party import trusting_entry
from auditor.verdict.ways import ways_of

OF_BUCKET: Final = frozenset(
    {
        "s3:DeleteBucket",
        "s3:DeleteBucketPolicy",
        "s3:ListBucket",
        "s3:ListBucketVersions",
        "s3:PutBucketAcl",
        "s3:PutBucketOwnershipControls",
        "s3:PutBucketPolicy",
        "s3:PutBucketPublicAccessBlock",
        "s3:PutBucketVersioning",
        "s3:PutLifecycleConfiguration",
        "s3:PutReplicationConfiguration",
    }
)
"""Actions whose resource is the bucket."""
OF_OBJECTS: Final = frozenset(
    {"s3:BypassGovernanceRetention", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetObject", "s3:PutObject"}
)
"""Actions whose resource is an object."""

_CHOSEN: Final = re.compile(
    r"s3:(?:x-amz-|requestobjecttag|object-lock-|if-(?:none-)?match$|prefix$|delimiter$|max-keys$)", re.IGNORECASE
)
"""Condition keys whose value the requester chooses in his request."""
_NO_ACL: Final = Skipped("the policy alone is judged")

Control = Mapping[str, ObjectAccess]
"""The access for each action, by the action's name."""
WriteGrants = Mapping[str, tuple[AccessGrant, ...]]
"""The S3 Access Grants of writing, by the audience that they are for, in the form of Audience.text."""
_WRITES: Final = ("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutObject")
"""The actions that a grant of writing allows (S3 User Guide, "Register a location")."""


def control_of(facts: BucketFacts, trust: Trust, now: datetime | None) -> Control | Unread | Skipped:
    """Return who may use each action by the bucket policy. If the policy was not read, return its Unread or Skipped. An
    action on objects counts if it is allowed for some object keys.
    """
    policy = facts.parsed_policy
    if not isinstance(policy, Policy):
        return policy
    known: dict[tuple[int, ...], ObjectAccess] = {}
    steps = Steps()
    found: dict[str, ObjectAccess] = {}
    if isinstance(facts.access_grants, AccessGrants):
        facts = replace(facts, access_grants=replace(facts.access_grants, grants=()))
    for action in sorted(OF_BUCKET | OF_OBJECTS):
        covering = _covering(policy, action, facts.bucket)
        if covering not in known:
            statements = [policy.statements[place] for place in covering]
            known[covering] = _access(facts, policy, statements, trust, now, steps=steps)
        found[action] = known[covering]
    return found


def write_grants(facts: BucketFacts, trust: Trust, now: datetime | None) -> WriteGrants:
    """Return the S3 Access Grants by which outsiders may write or delete objects, unless a Deny of the bucket policy
    keeps them from it. Grants and policies that were not read give nothing and close nothing.
    """
    grants = facts.access_grants
    if not isinstance(grants, AccessGrants):
        return {}
    found: dict[str, tuple[AccessGrant, ...]] = {}
    for grant in grants.grants:
        party = grantee_of(grant)
        insider = party.account == grants.account or trusting_entry(trust, party, INTERNET) is not None
        if grant.permission is not GrantPermission.READ and not insider and grant.is_on(facts.bucket):
            name = audience_of(party, INTERNET).text
            found[name] = (*found.get(name, ()), grant)
    return found if found and _lets_write(facts, grants, trust, now) else {}


def _lets_write(facts: BucketFacts, grants: AccessGrants, trust: Trust, now: datetime | None) -> bool:
    """True if the Denies of the bucket policy leave an action of writing to a holder of a grant's credentials."""
    policy = facts.parsed_policy
    if not isinstance(policy, Policy):
        return True
    one = AccessGrant(
        id="?",
        grantee_type=GranteeType.DIRECTORY_USER,
        grantee="?",
        permission=GrantPermission.READ,
        scope=f"{SCHEME}{facts.bucket}/*",
    )
    judged = replace(facts, access_grants=replace(grants, grants=(one,)))
    for action in _WRITES:
        covering = (policy.statements[place] for place in _covering(policy, action, facts.bucket))
        denies = [statement for statement in covering if not statement.allows]
        # A grant of reading has several actions; a Deny of the one action of writing stands for all of them.
        found = _access(judged, policy, denies, trust, now, action="s3:*")
        if found.verdict in (Verdict.SHARED, Verdict.UNKNOWN):
            return True
    return False


def _covering(policy: Policy, action: str, bucket: str) -> tuple[int, ...]:
    """Return the indices of the statements that matter for the action."""
    return tuple(
        place
        for place, statement in enumerate(policy.statements)
        if ways_of(statement.actions, (action,), negated=statement.not_action)
        and _covers(statement, action, bucket, policy.variables)
        and not (_chosen(statement) and not statement.allows)  # the requester avoids such a Deny
    )


def _covers(statement: Statement, action: str, bucket: str, variables: bool) -> bool:
    """True if the statement matters for the action: an Allow that covers some resource of the action, or a Deny that
    covers all of them.
    """
    covers = [cover_of(text, variables) for text in statement.resources]
    if action in OF_BUCKET:
        some = any(cover.matches(bucket) for cover in covers)
        every = any(cover.sure and cover.matches(bucket) for cover in covers)
    else:
        some = any(cover.may_match_after(f"{bucket}/") for cover in covers)
        every = any(cover.sure and cover.matches_all_after(f"{bucket}/") for cover in covers)
    if statement.not_resource:
        some, every = not every, not some
    return some if statement.allows else every


def _chosen(statement: Statement) -> bool:
    return any(_CHOSEN.match(key) for _, key, _ in statement.conditions)


def _access(
    facts: BucketFacts,
    policy: Policy,
    statements: Sequence[Statement],
    trust: Trust,
    now: datetime | None,
    *,
    action: str = "s3:GetObject",
    steps: Steps | None = None,
) -> ObjectAccess:
    """Return the access to an object of the bucket's owner under a policy of these statements. The statements are taken
    as statements on reading by the action. steps: those of all actions so far; unknown once they are all spent.
    """
    steps = steps or Steps()
    if steps.excess is not None:
        return ObjectAccess(Verdict.UNKNOWN, (), (steps.excess.reason,))
    judged = replace(facts, ownership=BUCKET_OWNER_ENFORCED)
    reading = tuple(_on_reading(statement, action) for statement in statements)
    engine = AccessEngine(judged, trust, now, replace(policy, statements=reading))
    acls, cause = views(_NO_ACL, None, judged)
    found = engine.access(engine.class_of(""), acls, EncryptionFacts(), latest=True, cause=cause)
    steps.spent += engine.spent
    return found


def _on_reading(statement: Statement, action: str) -> Statement:
    """Return the statement as one on reading any object, without the conditions that the requester chooses."""
    return replace(
        statement,
        actions=(action,),
        resources=("*",),
        conditions=tuple(one for one in statement.conditions if not _CHOSEN.match(one[1])),
        not_action=False,
        not_resource=False,
        sid=None,
    )
