"""B20: the bucket policy lets in an AWS service on behalf of any customer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from auditor.model.policy import Policy, Statement
from auditor.rules.base import Hit, Severity, rule
from auditor.verdict.trust import Trust

SOURCES: Final = frozenset(
    {"aws:sourcearn", "aws:sourceaccount", "aws:sourceowner", "aws:sourceorgid", "aws:sourceorgpaths"}
)
"""Condition keys that say for whom a service acts."""
WILD: Final = re.compile(r"[*?$]")
LIMITING: Final = frozenset({"stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike"})
HARMLESS: Final = ("s3:putobject", "s3:putobjectacl", "s3:putobjecttagging", "s3:getbucketacl", "s3:getbucketlocation")
"""Actions by which a service delivers files; with these alone it cannot read any."""


@rule("B20", "bucket-service-any-source", Severity.HIGH, reads=("bucket.parsed_policy", "trust"))
def check(bucket_parsed_policy: Policy, trust: Trust) -> Iterator[Hit]:
    """
    Why: CloudFront, logging and similar services act for every customer of AWS; a stranger can have the service read or
        fill this bucket.
    Flagged: an Allow for a service principal without a condition on the source (aws:SourceArn, SourceAccount,
        SourceOrgID ..) by fixed values: high, and medium if the service can only deliver files.
    Not flagged: trusted services; a source whose account, organization or bucket is fixed.
    Blind to: a Deny elsewhere in the policy that checks the source; services that act for no one else.
    Fix: add aws:SourceArn or aws:SourceAccount to the statement.
    """
    found: dict[str, Severity] = {}
    for statement in bucket_parsed_policy.statements:
        if not statement.allows or statement.not_principal or any(_names_source(*one) for one in statement.conditions):
            continue
        severity = Severity.MEDIUM if _delivers(statement) else Severity.HIGH
        for kind, value in statement.principals:
            if kind == "Service" and trust.principal(kind, value) is None:
                found[value] = severity if severity is Severity.HIGH else found.get(value, severity)
    for service, severity in found.items():
        does = "read or change the bucket" if severity is Severity.HIGH else "write to the bucket"
        yield Hit(f"an AWS service can {does} on behalf of any customer of AWS", service, severity=severity)


def _delivers(statement: Statement) -> bool:
    """True if the statement allows nothing but the delivery of files."""
    return not statement.not_action and all(action.lower() in HARMLESS for action in statement.actions)


def _names_source(operator: str, key: str, values: Sequence[str]) -> bool:
    return (
        key.lower() in SOURCES
        and operator.lower().removeprefix("foranyvalue:") in LIMITING
        and bool(values)
        and all(map(_is_fixed, values))
    )


def _is_fixed(source: str) -> bool:
    """True if the source names an account, an organization or a bucket without a wildcard."""
    parts = source.split(":", 5)
    owner = (parts[4] or parts[5].partition("/")[0]) if len(parts) == 6 else source.partition("/")[0]
    return bool(owner) and not WILD.search(owner)
