"""Collect the names in policies and an ACL: each is a requester or a place of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from auditor.model.object import ANONYMOUS_OWNER, PUBLIC_GROUPS
from tests.verdict.oracle.candidates import has_wildcard
from tests.verdict.oracle.conditions import variables
from tests.verdict.oracle.statements import Rule, Test

ACCOUNT_IN_ARN: Final = re.compile(r"arn:[^:]*:[^:]*:[^:]*:(\d{12}):")


@dataclass
class Named:
    """The names in the policies and the ACL of one bucket, by the kind of the requester or the place."""

    tests: dict[str, list[Test]] = field(default_factory=dict)
    accounts: dict[str, None] = field(default_factory=dict)
    principals: dict[str, None] = field(default_factory=dict)
    arn_patterns: dict[str, None] = field(default_factory=dict)
    """Patterns of principals' ARNs that name the account."""
    canonicals: dict[str, None] = field(default_factory=dict)
    groups: dict[str, None] = field(default_factory=dict)
    organizations: dict[str, None] = field(default_factory=dict)
    services: dict[str, None] = field(default_factory=dict)
    providers: dict[str, None] = field(default_factory=dict)
    unique_ids: dict[str, None] = field(default_factory=dict)
    """Unique IDs of roles and users, which AWS gives: nobody chooses one."""

    def values(self, *keys: str) -> list[str]:
        """Return the values that the policies name for the keys."""
        tests = (test for key in keys for test in self.tests.get(key, ()) if test.operator.lower() != "null")
        return list(dict.fromkeys(text for test in tests for text in test.values if "${" not in text))

    def exact(self, *keys: str) -> list[str]:
        """Return the values of the keys that are one name, and no pattern of names."""
        return [text for text in self.values(*keys) if not has_wildcard(text)]

    def patterns(self, *keys: str) -> list[str]:
        return [text for text in self.values(*keys) if has_wildcard(text)]

    def asks(self, key: str) -> bool:
        return key in self.tests


def named(rules: Iterable[Rule], grantees: Iterable[str]) -> Named:
    """Collect the names of the statements and of an ACL's owner and grantees. A public group is no name."""
    found = Named()
    for rule in rules:
        for test in rule.tests:
            for key in test.keys:
                found.tests.setdefault(key, [])
            found.tests[test.key].append(test)
        for key in (key for text in rule.resources for key in variables(text)):
            found.tests.setdefault(key, [])
        for kind, value in rule.principals:
            _principal(found, kind, value)
    _in_conditions(found)
    _unique_ids(found)
    for grantee in grantees:
        if grantee not in (*PUBLIC_GROUPS, ANONYMOUS_OWNER):
            (found.groups if "://" in grantee else found.canonicals)[grantee] = None
    return found


def _in_conditions(found: Named) -> None:
    for value in found.exact(
        "aws:principalarn", "aws:principalaccount", "s3:dataaccesspointaccount", "kms:calleraccount"
    ):
        _principal(found, "AWS", value)
    for pattern in found.patterns("aws:principalarn"):
        if account := ACCOUNT_IN_ARN.match(pattern):
            found.arn_patterns[pattern] = None
            found.accounts[account[1]] = None
    for value in found.exact("aws:vpceaccount"):
        _principal(found, "AWS", value)
    for pattern in found.values("s3:dataaccesspointarn", "aws:sourcevpcarn", "s3:accessgrantsinstancearn"):
        if account := ACCOUNT_IN_ARN.match(pattern):
            found.accounts[account[1]] = None
    for text in found.exact("aws:principalorgid") + found.values("aws:principalorgpaths"):
        organization = text.partition("/")[0]
        if not has_wildcard(organization):
            found.organizations[organization] = None
    for name in found.exact("aws:principalservicename", "aws:principalservicenameslist"):
        found.services[name] = None


def _unique_ids(found: Named) -> None:
    for text in found.values("aws:userid"):
        unique = text.partition(":")[0]
        if not has_wildcard(unique) and re.match("A[A-Z0-9]+$", unique):
            found.unique_ids[unique] = None


def _principal(found: Named, kind: str, value: str) -> None:
    if kind == "Service":
        found.services[value] = None
    elif kind == "Federated":
        found.providers[value] = None
    elif kind == "CanonicalUser":
        found.canonicals[value] = None
    elif value.isdigit():
        found.accounts[value] = None
    elif value.endswith(":root"):
        found.accounts[value.split(":")[4]] = None
    elif value != "*":
        found.principals[value] = None
