"""Parse a bucket policy into statements, principals, actions, resources and conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from auditor.model.json_codec import parse_object

MOST_CHARACTERS: Final = 100_000
"""Largest number of characters of a policy: parse() refuses a longer one. S3 accepts policies of up to 20 KB."""

MOST_OF_SID: Final = 128
"""Largest number of characters of a Sid by which reasons name a statement. A statement with a longer Sid is named by
its index."""

_FIELDS: Final = frozenset({"Sid", "Effect", "Condition"}) | {
    prefix + name for name in ("Principal", "Action", "Resource") for prefix in ("", "Not")
}

_PRINCIPAL_KINDS: Final = frozenset({"AWS", "CanonicalUser", "Service", "Federated"})
_TAGS: Final = ("aws:resourcetag/", "s3:buckettag/")
_VARIABLE: Final = re.compile(r"\$\{\s*([^\s,'{}]+)")
_WITH_VARIABLES: Final = "2012-10-17"
_VERSIONS: Final = frozenset({"2008-10-17", _WITH_VARIABLES})


class Statement(Struct, frozen=True, kw_only=True):
    """One statement of a bucket policy, as written. not_principal, not_action, not_resource: True if the statement has
    NotPrincipal, NotAction or NotResource; the list then names the exceptions.
    """

    allows: bool
    principals: tuple[tuple[str, str], ...]
    """The principals as pairs (kind, value); kind is AWS, CanonicalUser, Service or Federated."""
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[tuple[str, str, tuple[str, ...]], ...]
    """The conditions as triples (operator, key, values)."""
    not_principal: bool
    not_action: bool
    not_resource: bool
    sid: str | None = None
    """The statement's Sid as written; None if it has none."""


class Policy(Struct, frozen=True):
    """A parsed bucket policy. variables: True if `${...}` in a resource is a variable (Version 2012-10-17)."""

    statements: tuple[Statement, ...] = ()
    variables: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each statement in reasons: its Sid; or "#" and its index from 1, if it has no Sid, shares it with
        another statement, or has one of more than MOST_OF_SID characters.
        """
        sids = [statement.sid for statement in self.statements]
        return tuple(
            sid if sid and sids.count(sid) == 1 and len(sid) <= MOST_OF_SID else f"#{place}"
            for place, sid in enumerate(sids, 1)
        )


def is_bucket_tag(key: str) -> bool:
    """True for a condition key on a tag of the resource, which is the bucket in the policy of a bucket with ABAC."""
    return key.lower().startswith(_TAGS)


def bucket_tags(policy: Policy) -> frozenset[str]:
    """Return the keys of the bucket's tags for which conditions or policy variables ask, as the policy spells them."""
    texts = [text for one in policy.statements for text in one.resources]
    asked = [key for one in policy.statements for _, key, _ in one.conditions]
    texts += [value for one in policy.statements for *_, values in one.conditions for value in values]
    asked += [key for text in texts for key in _VARIABLE.findall(text)] if policy.variables else []
    return frozenset(key.partition("/")[2] for key in asked if is_bucket_tag(key))


def parse(text: str) -> Policy:
    """Parse a bucket policy; "" gives a policy without statements.

    Raises ValueError, whose message is made for the user. An unknown element, or one that is named twice, is refused,
    because it could change the meaning of the rest.
    """
    if not text:
        return Policy()
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the policy is longer than {MOST_CHARACTERS} characters")
    document = parse_object(text, "the policy", unique=True)
    if unknown := document.keys() - {"Version", "Id", "Statement"}:
        raise ValueError(f"the policy has an unknown element {min(unknown)!r}")
    version = document.get("Version", "2008-10-17")
    if not isinstance(version, str) or version not in _VERSIONS:
        raise ValueError("the policy's Version is unknown")
    listed = document.get("Statement")
    items = [listed] if isinstance(listed, dict) else listed
    if not isinstance(items, list):
        raise ValueError("the policy's Statement is neither a list nor an object")
    return Policy(tuple(_statement(item) for item in items), variables=version == _WITH_VARIABLES)


def _statement(item: object) -> Statement:
    if not isinstance(item, dict):
        raise ValueError("a statement is not an object")
    if unknown := item.keys() - _FIELDS:
        raise ValueError(f"a statement has an unknown element {min(unknown)!r}")
    if item.get("Effect") not in ("Allow", "Deny"):
        raise ValueError("a statement's Effect is neither Allow nor Deny")
    if not isinstance(sid := item.get("Sid"), str | None):
        raise ValueError("a statement's Sid is not a string")
    not_principal, principal = _either(item, "Principal")
    not_action, actions = _either(item, "Action")
    not_resource, resources = _either(item, "Resource")
    return Statement(
        allows=item["Effect"] == "Allow",
        principals=_principals(principal),
        actions=_strings(actions, "Action"),
        resources=_strings(resources, "Resource"),
        conditions=_conditions(item.get("Condition", {})),
        not_principal=not_principal,
        not_action=not_action,
        not_resource=not_resource,
        sid=sid,
    )


def _either(item: Mapping[str, Any], name: str) -> tuple[bool, object]:
    """Return (True, value of NotX) or (False, value of X), where X is `name`, such as Principal. Raises ValueError
    unless the statement has exactly one of the two.
    """
    negated = f"Not{name}" in item
    if negated == (name in item):
        raise ValueError(f"a statement does not have exactly one of {name} and Not{name}")
    return negated, item[f"Not{name}" if negated else name]


def _strings(value: object, name: str) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in values):
        raise ValueError(f"a statement's {name} is neither a string nor a list of strings")
    return tuple(values)


def _principals(value: object) -> tuple[tuple[str, str], ...]:
    if value == "*":
        return (EVERYONE,)
    if not isinstance(value, dict) or value.keys() - _PRINCIPAL_KINDS:
        raise ValueError("a statement's Principal is neither * nor an object of known kinds")
    return tuple((kind, text) for kind, texts in value.items() for text in _strings(texts, "Principal"))


def _conditions(value: object) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    if not isinstance(value, dict) or not all(isinstance(tests, dict) for tests in value.values()):
        raise ValueError("a statement's Condition is not an object of objects")
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for operator, tests in value.items():
        found += [(operator, key, _scalars(values)) for key, values in tests.items()] or [(operator, "", ())]
    return tuple(found)


def _scalars(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str | int | float) for item in values):
        raise ValueError("a condition's value is neither a string, a number, nor a boolean")
    return tuple(str(item).lower() if isinstance(item, bool) else str(item) for item in values)


EVERYONE: Final = ("AWS", "*")
"""The principal `"*"` or `{"AWS": "*"}`; S3 treats both alike."""
