"""Decide, from the bucket's facts, which rules a run judges and which calls it makes for each object."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts
from auditor.model.finding import RuleUndecided
from auditor.model.object import ENCRYPTION, Ask, Skipped, Unread
from auditor.rules.base import Rule, bucket_fact

NOT_NEEDED = "no selected rule needs it"
ACLS_DISABLED = "ACLs are disabled (BucketOwnerEnforced)"


class Plan(Struct, frozen=True):
    """The plan of a run: the rules to judge, the rules that stay undecided for lack of a bucket fact, and the calls for
    each object.
    """

    bucket_rules: tuple[Rule, ...]
    object_rules: tuple[Rule, ...]
    undecided: tuple[RuleUndecided, ...]
    ask: Ask


def make_plan(rules: Sequence[Rule], facts: BucketFacts) -> Plan:
    """Plan a run. A rule is undecided if it needs a bucket fact that could not be read, left out if one was skipped.

    With BucketOwnerEnforced, rules that read ACLs or owners are left out too: S3 ignores grants, and the bucket's owner
    owns every object.
    """
    ready: list[Rule] = []
    undecided: list[RuleUndecided] = []
    for rule in rules:
        needed = [bucket_fact(facts, name) for name in rule.reads if name.startswith("bucket.")]
        if "control" in rule.reads:
            needed.append(facts.parsed_policy)
        unread = next((fact for fact in needed if isinstance(fact, Unread)), None)
        if unread is not None:
            undecided.append(RuleUndecided(rule.id, unread.action, unread.code))
        elif not any(isinstance(fact, Skipped) for fact in needed):
            ready.append(rule)
    enforced = facts.ownership == BUCKET_OWNER_ENFORCED
    if enforced:
        ready = [rule for rule in ready if not {"acl", "owner"}.intersection(rule.reads)]
    acl, head = _needs(ready, "acl"), _needs(ready, "head")
    if enforced:
        acl = Skipped(ACLS_DISABLED)
    return Plan(
        tuple(rule for rule in ready if not rule.per_object),
        tuple(rule for rule in ready if rule.per_object),
        tuple(undecided),
        Ask(acl, head, acl_for_owner=not enforced and any("owner" in rule.reads for rule in ready)),
    )


def _needs(rules: Sequence[Rule], fact: str) -> Skipped | None:
    return None if any(rule.needs(fact) for rule in rules) else Skipped(NOT_NEEDED)


def judges_values(plan: Plan) -> bool:
    """True if a rule judges values of user metadata, which a run folder need not have."""
    return any(rule.values for rule in plan.object_rules)


def head_groups(plan: Plan) -> frozenset[str]:
    """Return the groups of members of the HEAD that the rules read, and the encryption, which decides on verdicts."""
    return frozenset({ENCRYPTION}).union(*(rule.head_groups for rule in plan.object_rules))
