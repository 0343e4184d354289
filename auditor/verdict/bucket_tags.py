"""The bucket's tags in conditions, where attribute-based access control (ABAC) is on.

Source: S3 user guide, "Enabling ABAC in general purpose buckets"; IAM user guide, aws:ResourceTag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from auditor.model.bucket import BucketFacts
from auditor.model.policy import Policy, is_bucket_tag
from auditor.verdict.domains import ABSENT, UNKNOWN, Domain, FixedValues

Condition = tuple[str, str, tuple[str, ...]]
"""Operator, key and values."""

_OF_REQUESTER: Final = re.compile(r"\$\{\s*(aws:principaltag/[^\s,'{}]+)\s*\}", re.IGNORECASE)
_TURNED: Final = {
    "stringequals": "StringEquals",
    "stringlike": "StringEquals",
    "stringnotequals": "StringNotEquals",
    "stringnotlike": "StringNotEquals",
}


def tag_domain(facts: BucketFacts, key: str) -> Domain:
    """Return the domain of a condition key on a tag of the bucket. The keys of tags are case-sensitive in s3:BucketTag,
    and not in aws:ResourceTag.
    """
    if facts.abac is False:
        return ABSENT
    if facts.abac is not True or not isinstance(facts.tags, Mapping):
        return UNKNOWN
    _, _, name = key.partition("/")
    exact = key.lower().startswith("s3:")
    alike = {tag: value for tag, value in facts.tags.items() if tag.lower() == name.lower()}
    values = {value for tag, value in alike.items() if value is not None and (tag == name or not exact)}
    return UNKNOWN if not alike or len(values) > 1 else FixedValues(tuple(values))


def with_known_tags(policy: Policy, facts: BucketFacts) -> Policy:
    """Return the policy, in which each condition that compares a tag of the bucket with the same requester's tag asks
    for the requester's tag. Other conditions on that tag then count together with it.
    """
    if not policy.variables:
        return policy
    return replace(
        policy,
        statements=tuple(
            replace(one, conditions=tuple(_turned(condition, facts) for condition in one.conditions))
            for one in policy.statements
        ),
    )


def _turned(condition: Condition, facts: BucketFacts) -> Condition:
    operator, key, values = condition
    turned = _TURNED.get(operator.lower().removesuffix("ifexists"))
    variable = _OF_REQUESTER.fullmatch(values[0]) if len(values) == 1 and is_bucket_tag(key) else None
    if turned is None or variable is None:
        return condition
    domain = tag_domain(facts, key)
    if not isinstance(domain, FixedValues) or not domain.values or "$" in domain.values[0]:
        return condition
    return turned, variable[1], domain.values
