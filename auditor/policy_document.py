"""A bucket policy, read as text: who else may read an object, or read or write its ACL, and what is denied to everyone.

Pure: text and facts in, bits out. What cannot be decided from the text alone is said to be undecided, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from auditor.insiders import EVERYONE, NOBODY, UNDECIDED, Insiders
from auditor.wildcard import Wildcard

ACTIONS: Final = (
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:GetObjectAcl",
    "s3:GetObjectVersionAcl",
    "s3:PutObjectAcl",
    "s3:PutObjectVersionAcl",
)
"""The ways of reaching an object; a set of ways is an int whose bit i stands for ACTIONS[i]."""
READ, READ_ACP, WRITE_ACP, VERSION_WAYS, ALL_WAYS = 0b000011, 0b001100, 0b110000, 0b101010, 0b111111

MOST_CHARACTERS: Final = 100_000
"""S3 takes policies of 20 KB; a text far beyond that is none."""
NEWEST_TLS: Final = 1.3

_FIELDS: Final = frozenset({"Sid", "Effect", "Condition"}) | {
    prefix + name for name in ("Principal", "Action", "Resource") for prefix in ("", "Not")
}
_PRINCIPAL_KINDS: Final = frozenset({"AWS", "CanonicalUser", "Service", "Federated"})
_WITH_VARIABLES: Final = "2012-10-17"
_VERSIONS: Final = frozenset({"2008-10-17", _WITH_VARIABLES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement as written. A `not_` flag says that the list came under NotPrincipal, NotAction, NotResource.

    principals: (kind, value), kind AWS, CanonicalUser, Service or Federated. conditions: (operator, key, values).
    """

    allows: bool
    principals: tuple[tuple[str, str], ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    not_principal: bool = False
    not_action: bool = False
    not_resource: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """variables: `${...}` in a resource means something (Version 2012-10-17)."""

    statements: tuple[Statement, ...] = ()
    variables: bool = True


def parse(text: str) -> Policy:
    """The policy of a document, "" being no policy; ValueError says in a sentence why the text is none.

    Stricter than JSON: a name that stands twice, or that policies do not have, may change the meaning: refused.
    """
    if not text:
        return Policy()
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the policy is longer than {MOST_CHARACTERS} characters")
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_int=float)
    except (json.JSONDecodeError, RecursionError) as exc:
        raise ValueError("the policy is not JSON") from exc
    if not isinstance(document, dict):
        raise ValueError("the policy is not a JSON object")
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the policy has an element twice")
    return found


def _statement(item: object) -> Statement:
    if not isinstance(item, dict):
        raise ValueError("a statement is not an object")
    if unknown := item.keys() - _FIELDS:
        raise ValueError(f"a statement has an unknown element {min(unknown)!r}")
    if item.get("Effect") not in ("Allow", "Deny"):
        raise ValueError("a statement's Effect is neither Allow nor Deny")
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
    )


def _either(item: Mapping[str, Any], name: str) -> tuple[bool, object]:
    """Whether the element stands under its Not form, and its value."""
    negated = f"Not{name}" in item
    if negated == (name in item):
        raise ValueError(f"a statement has not exactly one of {name} and Not{name}")
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
    return tuple(str(item) for item in values)


# ---- what it comes to for one key


class Reach(NamedTuple):
    """Sets of ways: allowed to everyone, to others, perhaps allowed to someone; and denied to everyone."""

    everyone: int = 0
    others: int = 0
    undecided: int = 0
    denied: int = 0

    def with_(self, other: Reach) -> Reach:
        return Reach(*(mine | its for mine, its in zip(self, other, strict=True)))


NOTHING: Final = Reach()


class _Covers(NamedTuple):
    """Which objects a resource pattern covers; an undecidable cover is not sure. wildcard None: every object."""

    wildcard: Wildcard | None
    sure: bool


class _Keyed(NamedTuple):
    """What a statement adds for the keys that it covers, surely or perhaps."""

    covers: tuple[_Covers, ...]
    negated: bool
    surely: Reach
    perhaps: Reach

    def reach(self, path: str) -> Reach:
        doubtful = False
        for wildcard, sure in self.covers:
            if wildcard is None or wildcard.matches(path):
                if sure:
                    return NOTHING if self.negated else self.surely
                doubtful = True
        return self.perhaps if doubtful or self.negated else NOTHING


class CompiledPolicy:
    """A policy made ready for one bucket; asking costs nothing but a look-up where no statement looks at keys."""

    def __init__(self, policy: Policy, bucket: str, insiders: Insiders) -> None:
        self._bucket = f"{bucket}/"
        self._always = NOTHING
        self._keyed: list[_Keyed] = []
        for statement in policy.statements:
            surely, perhaps = _effect(statement, insiders)
            if surely == NOTHING == perhaps:
                continue
            covers = tuple(_covers(text, policy.variables) for text in statement.resources)
            covers = tuple(cover for cover in covers if self._may_cover(cover))
            self._add(_Keyed(covers, statement.not_resource, surely, perhaps))

    def reach(self, key: str) -> Reach:
        """What the policy allows and denies for one key of the bucket."""
        found = self._always
        if self._keyed:
            path = self._bucket + key
            for keyed in self._keyed:
                added = keyed.reach(path)
                if added is not NOTHING:
                    found = found.with_(added)
        return found

    def _may_cover(self, cover: _Covers) -> bool:
        return cover.wildcard is None or cover.wildcard.may_match_after(self._bucket)

    def _covers_all(self, cover: _Covers) -> bool:
        return cover.wildcard is None or cover.wildcard.matches_all_after(self._bucket)

    def _add(self, keyed: _Keyed) -> None:
        surely = any(cover.sure and self._covers_all(cover) for cover in keyed.covers)
        if not keyed.covers or surely:
            # No key decides: the statement covers all of the bucket's objects, or none.
            if surely != keyed.negated:
                self._always = self._always.with_(keyed.surely)
        else:
            self._keyed.append(keyed)


def _effect(statement: Statement, insiders: Insiders) -> tuple[Reach, Reach]:
    """What the statement does to the keys that it surely covers, and to those that it perhaps covers."""
    ways = _ways(statement)
    if not statement.allows:
        plain = not (statement.conditions or statement.not_principal or statement.not_action or statement.not_resource)
        return Reach(denied=ways if plain and EVERYONE in statement.principals else 0), NOTHING
    if statement.not_principal:
        audiences = [UNDECIDED]
    else:
        audiences = [insiders.audience(*principal) for principal in statement.principals]
    everyone, others, undecided = (ways if any(column) else 0 for column in zip(NOBODY, *audiences, strict=True))
    perhaps = Reach(undecided=everyone | others | undecided)
    decided = not (statement.not_action or statement.not_resource) and all(map(_anyone_meets, statement.conditions))
    return (Reach(everyone, others, undecided) if decided else perhaps), perhaps


def _ways(statement: Statement) -> int:
    patterns = [Wildcard.of(action.lower()) for action in statement.actions]
    named = sum(1 << i for i, name in enumerate(ACTIONS) if any(p.matches(name.lower()) for p in patterns))
    return ALL_WAYS & ~named if statement.not_action else named


def _anyone_meets(condition: tuple[str, str, tuple[str, ...]]) -> bool:
    """Whether everybody can send a request that meets the condition: over TLS, of a version that exists."""
    operator, key, values = condition
    match operator.removesuffix("IfExists"), key.lower():
        case "Bool", "aws:securetransport":
            return any(value.lower() == "true" for value in values)
        case "NumericGreaterThanEquals", "s3:tlsversion":
            return any(re.fullmatch(r"\d+(\.\d+)?", value) and float(value) <= NEWEST_TLS for value in values)
    return False


def _covers(text: str, variables: bool) -> _Covers:
    """The objects of one Resource, "arn:PARTITION:s3:::BUCKET/KEY" or "*"; `*` crosses slashes."""
    if text and not text.strip("*"):
        return _Covers(None, True)
    parts = text.split(":", 5)
    head = parts[:5]
    if len(parts) < 6 or parts[0] != "arn" or "$" in "".join(head):
        return _Covers(None, False)
    wildcard = Wildcard.of(parts[5], variables=variables)
    # Objects have no region and no account in their ARNs; Ceph has tenants there, which we do not know.
    plain = parts[2] == "s3" and not "".join(parts[3:5]).strip("*")
    if not plain and not Wildcard.of(parts[2]).matches("s3"):
        return _Covers(Wildcard.of(""), True)
    return _Covers(wildcard, wildcard.sure and plain)
