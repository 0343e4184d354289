"""Tell if a policy is public, as S3 does for GetBucketPolicyStatus: it is, unless fixed values limit each Allow.

Source: S3 user guide, "Blocking public access to your Amazon S3 storage", the meaning of "public".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from auditor.model.bucket import Semantics
from auditor.model.policy import Policy, Statement
from auditor.verdict.conditions import key_name
from auditor.verdict.networks import is_broad, parse_network
from auditor.verdict.principals import PUBLIC_PROVIDERS, PrincipalSet, is_fixed

_TEXTS: Final = frozenset({"stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike"})
_FIXED: Final = frozenset(
    {
        "aws:principalorgid",
        "aws:principalarn",
        "aws:principalaccount",
        "aws:sourcearn",
        "aws:sourcevpc",
        "aws:sourcevpce",
        *("aws:sourcevpcarn", "aws:vpceaccount", "aws:vpceorgid", "aws:vpceorgpaths"),
        "aws:sourceowner",
        "aws:sourceaccount",
        "s3:dataaccesspointaccount",
        "s3:x-amz-server-side-encryption-aws-kms-key-id",
    }
)
"""Condition keys whose fixed values limit a statement. The guide leaves open if those on the owner of a VPC endpoint
do. Here they do, so that RestrictPublicBuckets is never taken to hide an object that S3 may leave open."""

_SESSIONS: Final = re.compile(r"[A-Z0-9]+:\*")
"""Pattern for all sessions of one role, in aws:userid. The guide leaves open if this value limits a statement. Here it
does, so that RestrictPublicBuckets is never taken to hide an object that S3 may leave open."""


def is_public(policy: Policy, *, semantics: Semantics) -> bool:
    """True if an Allow of the policy is for everyone. On Ceph, only an Allow without a condition counts."""
    return any(_is_public(statement, semantics) for statement in policy.statements if statement.allows)


def _is_public(statement: Statement, semantics: Semantics) -> bool:
    principals = PrincipalSet(statement.principals, negated=statement.not_principal, semantics=semantics)
    providers = any(party.provider in PUBLIC_PROVIDERS for party in principals.named)
    if not (principals.everyone or (providers and not statement.not_principal)):
        return False
    if semantics is Semantics.CEPH:
        return not statement.conditions
    return not any(_limits(*condition) for condition in statement.conditions)


def _limits(operator: str, key: str, values: Sequence[str]) -> bool:
    """True if the condition limits the statement by fixed values."""
    name = key_name(key)
    if name == "aws:sourceip":
        return operator.lower() == "ipaddress" and bool(values) and all(map(_is_narrow, values))
    if operator.lower() not in _TEXTS or not values:
        return False
    if name == "s3:dataaccesspointarn":
        return all(len(parts) == 6 and is_fixed(parts[4]) for parts in (value.split(":", 5) for value in values))
    if name == "aws:userid":
        return all(is_fixed(value) or _SESSIONS.fullmatch(value) for value in values)
    return name in _FIXED and all(map(is_fixed, values))


def _is_narrow(text: str) -> bool:
    try:
        return not is_broad(parse_network(text))
    except ValueError:
        return False
