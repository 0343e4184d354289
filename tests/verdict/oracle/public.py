"""Say if S3 calls a policy public: the page on blocking public access names the conditions that limit a grant."""

from __future__ import annotations

import re

from tests.verdict.oracle.candidates import has_wildcard, is_narrow, networks
from tests.verdict.oracle.identities import PUBLIC_PROVIDERS
from tests.verdict.oracle.statements import Rule, Test

_FIXED = frozenset(
    {
        *("aws:principalorgid", "aws:principalaccount", "aws:principalarn", "aws:sourcearn", "aws:sourcevpc"),
        *("aws:sourcevpce", "aws:sourcevpcarn", "aws:vpceaccount", "aws:vpceorgid", "aws:vpceorgpaths"),
        *("aws:sourceowner", "aws:sourceaccount", "s3:dataaccesspointaccount"),
        "s3:x-amz-server-side-encryption-aws-kms-key-id",
    }
)
_LIMITING = frozenset({"stringequals", "stringlike", "arnequals", "arnlike", "stringequalsignorecase", "ipaddress"})


def is_public(rules: tuple[Rule, ...]) -> bool:
    """True if a statement allows everyone, and none of its conditions limits it to fixed values."""
    return any(rule.allows and _for_everyone(rule) and not any(map(_limits, rule.tests)) for rule in rules)


def _for_everyone(rule: Rule) -> bool:
    return any(
        (kind == "AWS" and value == "*") or (kind == "Federated" and value in PUBLIC_PROVIDERS)
        for kind, value in rule.principals
    )


def _limits(test: Test) -> bool:
    if test.operator.lower() not in _LIMITING or any("${" in text for text in test.values):
        return False
    if test.key == "aws:sourceip":
        return all(map(is_narrow, networks(test.values)))
    if test.key == "aws:userid":
        return not any(has_wildcard(re.sub(r"^[A-Z0-9]+:\*$", "", text)) for text in test.values)
    if test.key == "s3:dataaccesspointarn":
        return all(re.match(r"arn:aws:s3:[^:]*:\d{12}:accesspoint/", text) for text in test.values)
    return test.key in _FIXED and not any(map(has_wildcard, test.values))
