"""A case in a form that can be changed, printed and run again."""

from __future__ import annotations

import copy
import json
import pprint
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from auditor.model.bucket import BucketFacts, PublicAccessBlock
from auditor.model.object import Acl, Grant, Head, ObjectRef, Skipped, Unread
from tests.verdict.oracle.public import is_public
from tests.verdict.oracle.statements import read
from tests.verdict.oracle.worlds import Case

OWNER, OTHER, FRIEND = "a" * 64, "b" * 64, "c" * 64
OURS, THEIRS, FRIENDS = "111122223333", "444455556666", "777788889999"
DENIED: Final = Unread("Operation", "AccessDenied")
OWN_ACL: Final = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
PLAIN: Final = Head(etag="e", content_length=1, server_side_encryption="AES256")
CURRENT: Final = ObjectRef("dir/key", "e", 1, "2026-01-02T03:04:05Z", owner=OWNER)
DEFAULTS: Final[dict[str, Any]] = {
    "region": "eu-central-1",
    "owner": OWNER,
    "own_id": OWNER,
    "account": OURS,
    "ownership": "ObjectWriter",
    "public_access_block": PublicAccessBlock(),
    "account_public_access_block": PublicAccessBlock(),
    "policy_is_public": DENIED,
    "versioning": "Enabled",
    "request_payer": "BucketOwner",
    "access_points": (),
    "key_policies": {},
}
"""A bucket of ours with ACLs in use, without policy, block or access point."""


BY_THE_GUIDE: Final = "as S3 reads the policy"
"""Stands for the fact policy_is_public that S3 gives for the policy of the recipe."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A case: the statements of the bucket policy, None if it was not read, and what differs from DEFAULTS."""

    statements: list[dict[str, Any]] | None = field(default_factory=list)
    version: str = "2012-10-17"
    facts: dict[str, Any] = field(default_factory=dict)
    acl: Acl | Unread | Skipped = OWN_ACL
    head: Head | Unread | Skipped = PLAIN
    ref: ObjectRef = CURRENT
    trusted: tuple[str, ...] = ()
    versions: bool = False

    def case(self) -> Case:
        text: str | Unread = DENIED
        if self.statements is not None:
            text = json.dumps({"Version": self.version, "Statement": self.statements}) if self.statements else ""
        values = {**DEFAULTS, **self.facts}
        if values["policy_is_public"] == BY_THE_GUIDE:
            values["policy_is_public"] = is_public(read(text)) if isinstance(text, str) else DENIED
        facts = BucketFacts(bucket="bucket", policy=text, **values)
        return Case(facts, self.acl, self.head, self.ref, self.trusted, self.versions)

    @property
    def text(self) -> str:
        """The recipe as a Python expression, without what is as usual."""
        usual = Recipe()
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        lines = [f"    {name}={_shown(value)}," for name, value in given.items() if value != getattr(usual, name)]
        return "\n".join(["Recipe(", *lines, ")"])


def _shown(value: object) -> str:
    for name, usual in (("PLAIN", PLAIN), ("CURRENT", CURRENT)):
        if isinstance(value, type(usual)):
            pairs = ((name, getattr(value, name)) for name in usual.__struct_fields__)
            changes = [f"{field}={given!r}" for field, given in pairs if given != getattr(usual, field)]
            return f"replace({', '.join([name, *changes])})"
    return pprint.pformat(value, width=110, sort_dicts=False)


def shrunk(recipe: Recipe, fails: Callable[[Recipe], bool]) -> Recipe:
    """Return the recipe without each part that a failure does not need."""
    while True:
        smaller = next((one for one in _smaller(recipe) if fails(one)), None)
        if smaller is None:
            return recipe
        recipe = smaller


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    for place in range(len(recipe.statements or ())):
        yield replace(recipe, statements=_without(recipe.statements or [], place))
    for name in ("trusted", "versions", "version", "head", "ref", "acl"):
        usual = getattr(Recipe(), name)
        if getattr(recipe, name) != usual:
            yield replace(recipe, **{name: usual})
    for entry in range(len(recipe.trusted)):
        yield replace(recipe, trusted=tuple(_without(list(recipe.trusted), entry)))
    for fact in recipe.facts:
        yield replace(recipe, facts={name: value for name, value in recipe.facts.items() if name != fact})
    if isinstance(recipe.acl, Acl) and recipe.acl != OWN_ACL:
        for place in range(len(recipe.acl.grants)):
            grants = tuple(_without(list(recipe.acl.grants), place))
            yield replace(recipe, acl=Acl(recipe.acl.owner, grants))
    for place, statement in enumerate(recipe.statements or ()):
        for changed in _smaller_statements(statement):
            statements = copy.copy(recipe.statements or [])
            statements[place] = changed
            yield replace(recipe, statements=statements)


def _smaller_statements(statement: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usual = {"Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    for name, value in usual.items():
        if statement.get(name) != value:
            yield {key: given for key, given in statement.items() if key != f"Not{name}"} | {name: value}
        listed = statement.get(name)
        if isinstance(listed, list) and len(listed) > 1:
            for place in range(len(listed)):
                yield statement | {name: _without(listed, place)}
    condition = statement.get("Condition", {})
    for operator, asked in condition.items():
        for key, values in asked.items():
            left = {
                name: {one: some for one, some in tests.items() if (name, one) != (operator, key)}
                for name, tests in condition.items()
            }
            yield statement | {"Condition": {name: tests for name, tests in left.items() if tests}}
            if isinstance(values, list) and len(values) > 1:
                for place in range(len(values)):
                    yield statement | {"Condition": condition | {operator: asked | {key: _without(values, place)}}}


def _without(items: list[Any], place: int) -> list[Any]:
    return [*items[:place], *items[place + 1 :]]
