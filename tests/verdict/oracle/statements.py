"""Read a policy's JSON text, and decide one statement for one concrete request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from tests.verdict.oracle.conditions import Values, expand, holds, known, like, marked, normal, variables

OF_SERVICES: Final = (
    *("aws:principalisawsservice", "aws:principalservicename", "aws:principalservicenameslist"),
    *("aws:sourcearn", "aws:sourceaccount", "aws:sourceowner", "aws:sourceorgid", "aws:sourceorgpaths"),
)
"""The condition keys that only requests of AWS services have, or that say whether the request is one."""


@dataclass(frozen=True)
class Identity:
    """The identity of one requester. account: 12 digits. groups: the ACL groups that it belongs to besides the public
    ones. An unsigned requester has none of these.
    """

    signed: bool = False
    account: str | None = None
    arn: str | None = None
    canonical: str | None = None
    service: str | None = None
    provider: str | None = None
    groups: tuple[str, ...] = ()
    by_acl: bool = True
    """False for AWS services at large: they get in only by an Allow that asks for a key that services have."""


@dataclass(frozen=True, eq=False)
class Test:
    """One condition of a statement. Two tests are the same only if they are one object."""

    operator: str
    key: str
    values: tuple[str, ...]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The key that the condition asks for, and those of its variables."""
        return (self.key, *(name for text in self.values for name in variables(text)))

    @cached_property
    def known(self) -> bool:
        """True if IAM has the operator."""
        return known(self.operator)


@dataclass(frozen=True, eq=False)
class Rule:
    """One statement of a policy."""

    allows: bool
    principals: tuple[tuple[str, str], ...]
    not_principal: bool
    actions: tuple[str, ...]
    not_action: bool
    resources: tuple[str, ...]
    not_resource: bool
    tests: tuple[Test, ...]

    @cached_property
    def asks_for_a_service(self) -> bool:
        return any(test.key in OF_SERVICES for test in self.tests)

    def names(self, who: Identity) -> bool:
        return any(_is(kind, value, who) for kind, value in self.principals) != self.not_principal

    @cached_property
    def _covered_actions(self) -> dict[str, bool]:
        return {}

    def covers_action(self, action: str) -> bool:
        found = self._covered_actions.get(action)
        if found is None:
            named = any(like(marked(text.lower()), action.lower()) for text in self.actions)
            found = self._covered_actions[action] = named != self.not_action
        return found

    @cached_property
    def _plain_resources(self) -> tuple[str, ...] | None:
        """The patterns of the resources; None if one has a variable."""
        return None if any("$" in text for text in self.resources) else tuple(map(marked, self.resources))

    def covers(self, resource: str, request: Mapping[str, Values]) -> bool:
        if self._plain_resources is not None:
            return any(like(pattern, resource) for pattern in self._plain_resources) != self.not_resource
        patterns = (expand(text, request) for text in self.resources)
        return any(pattern is not None and like(pattern, resource) for pattern in patterns) != self.not_resource


def _is(kind: str, value: str, who: Identity) -> bool:
    if kind == "AWS":
        if value == "*":
            return True
        if value.isdigit() or value.endswith(":root"):
            return who.account is not None and who.account in value
        return who.arn == value
    return value == {"CanonicalUser": who.canonical, "Service": who.service, "Federated": who.provider}[kind]


def read(text: str) -> tuple[Rule, ...]:
    """Return the statements of a policy's text; "" has none."""
    document = json.loads(text) if text else {"Statement": []}
    current = document.get("Version") == "2012-10-17"
    return tuple(_rule(item, current) for item in _list(document["Statement"]))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _rule(item: dict[str, Any], current: bool) -> Rule:
    """current: True if the policy's version has variables."""

    def texts(value: Any) -> tuple[str, ...]:
        found = [_text(one) for one in _list(value)]
        # Without variables "${" is text. No request has this key, whose default is the text.
        return tuple(found if current else (text.replace("${", "${no, '${'}") for text in found))

    who: Any = item.get("Principal", item.get("NotPrincipal"))
    pairs: dict[str, Any] = {"AWS": "*"} if who == "*" else who
    return Rule(
        item["Effect"] == "Allow",
        tuple((kind, value) for kind, values in pairs.items() for value in _list(values)),
        "NotPrincipal" in item,
        tuple(_list(item.get("Action", item.get("NotAction")))),
        "NotAction" in item,
        texts(item.get("Resource", item.get("NotResource"))),
        "NotResource" in item,
        tuple(
            Test(operator, normal(key), texts(values))
            for operator, asked in item.get("Condition", {}).items()
            for key, values in asked.items()
        ),
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class Memory:
    """Decides conditions, and remembers the answers of those without variables."""

    truth: Mapping[Test, bool]
    """The conditions whose operator IAM does not have, as one completion of the world decides them."""
    _answers: dict[tuple[Test, Values], bool] = field(default_factory=dict)
    granted: dict[tuple[object, Identity], dict[str, list[tuple[str, str]]]] = field(default_factory=dict)
    """The grants of a world's ACL to a requester, by action."""
    _naming: dict[tuple[tuple[Rule, ...], Identity], list[Rule]] = field(default_factory=dict)

    def naming(self, rules: tuple[Rule, ...], who: Identity) -> list[Rule]:
        """Return the statements that name the requester."""
        found = self._naming.get((rules, who))
        if found is None:
            found = self._naming[rules, who] = [rule for rule in rules if rule.names(who)]
        return found

    def met(self, rule: Rule, request: Mapping[str, Values]) -> bool:
        return all(self.holds(test, request) for test in rule.tests)

    def holds(self, test: Test, request: Mapping[str, Values]) -> bool:
        if not test.known:
            return self.truth[test]
        given = request.get(test.key)
        if len(test.keys) > 1:
            return holds(test.operator, test.values, given, request)
        found = self._answers.get((test, given))
        if found is None:
            found = self._answers[test, given] = holds(test.operator, test.values, given, request)
        return found
