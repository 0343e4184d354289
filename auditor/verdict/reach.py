"""Evaluate a bucket policy for one object key: which actions it allows to everyone or to other accounts, and which it
denies to everyone.

A "way" is an action that reaches an object, such as s3:GetObject. A way is undecided if the policy's text alone does
not tell who may use it; no call to AWS is made to find out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, NamedTuple

from auditor.model.policy import EVERYONE, Policy, Statement
from auditor.verdict.principals import NOBODY, UNDECIDED, Principals
from auditor.verdict.wildcard import Wildcard

ACTIONS: Final = (
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:GetObjectAcl",
    "s3:GetObjectVersionAcl",
    "s3:PutObjectAcl",
    "s3:PutObjectVersionAcl",
)
"""The ways to reach an object. A set of ways is an int whose bit i stands for ACTIONS[i]."""

READ, READ_ACP, WRITE_ACP, VERSION_WAYS, ALL_WAYS = 0b000011, 0b001100, 0b110000, 0b101010, 0b111111
NEWEST_TLS: Final = 1.3


# ---- the effect on one key


class Reach(NamedTuple):
    """The effect of a policy on one object key: four sets of actions, as bits of ACTIONS.

    everyone: the actions that the policy allows to everyone. others: those that it allows to other accounts. undecided:
    those that it possibly allows to outsiders. denied: those that it denies to everyone.
    """

    everyone: int = 0
    others: int = 0
    undecided: int = 0
    denied: int = 0

    def with_(self, other: Reach) -> Reach:
        return Reach(*(mine | its for mine, its in zip(self, other, strict=True)))


NOTHING: Final = Reach()
_EVERY_OBJECT: Final = Wildcard.of("*")


class _StatementsByKey(NamedTuple):
    """A statement of a policy whose effect depends on the object key.

    covers: the patterns of Resource; if negated is True, those of NotResource. surely: the statement's effect on a key
    that it certainly covers. perhaps: its effect on a key that it covers only possibly.
    """

    covers: tuple[Wildcard, ...]
    negated: bool
    surely: Reach
    perhaps: Reach

    def reach(self, path: str) -> Reach:
        doubtful = False
        for cover in self.covers:
            if cover.matches(path):
                if cover.sure:
                    return NOTHING if self.negated else self.surely
                doubtful = True
        return self.perhaps if doubtful or self.negated else NOTHING


class CompiledPolicy:
    """A bucket policy prepared for many keys: statements that cover all objects are evaluated only once."""

    def __init__(self, policy: Policy, bucket: str, principals: Principals) -> None:
        self._bucket = f"{bucket}/"
        self._always = NOTHING
        self._keyed: list[_StatementsByKey] = []
        for statement in policy.statements:
            surely, perhaps = _effect(statement, principals)
            if surely == NOTHING == perhaps:
                continue
            covers = tuple(_covers(text, policy.variables) for text in statement.resources)
            covers = tuple(cover for cover in covers if cover.may_match_after(self._bucket))
            self._add(_StatementsByKey(covers, statement.not_resource, surely, perhaps))

    def reach(self, key: str) -> Reach:
        """Return the actions that the policy allows and denies on the object with this key."""
        found = self._always
        if self._keyed:
            path = self._bucket + key
            for keyed in self._keyed:
                added = keyed.reach(path)
                if added is not NOTHING:
                    found = found.with_(added)
        return found

    def _add(self, keyed: _StatementsByKey) -> None:
        surely = any(cover.sure and cover.matches_all_after(self._bucket) for cover in keyed.covers)
        if not keyed.covers or surely:
            # The object key does not matter: the statement covers every object of the bucket, or none.
            if surely != keyed.negated:
                self._always = self._always.with_(keyed.surely)
        else:
            self._keyed.append(keyed)


def _effect(statement: Statement, principals: Principals) -> tuple[Reach, Reach]:
    """Return two effects of a statement: on the keys that it certainly covers, and on the keys that it may cover."""
    ways = _ways(statement)
    if not statement.allows:
        plain = not (statement.conditions or statement.not_principal or statement.not_action or statement.not_resource)
        return Reach(denied=ways if plain and EVERYONE in statement.principals else 0), NOTHING
    if statement.not_principal:
        audiences = [UNDECIDED]
    else:
        audiences = [principals.audience(*principal) for principal in statement.principals]
    everyone, others, undecided = (ways if any(column) else 0 for column in zip(NOBODY, *audiences, strict=True))
    perhaps = Reach(undecided=everyone | others | undecided)
    decided = not (statement.not_action or statement.not_resource) and all(map(_anyone_meets, statement.conditions))
    return (Reach(everyone, others, undecided) if decided else perhaps), perhaps


def _ways(statement: Statement) -> int:
    patterns = [Wildcard.of(action.lower()) for action in statement.actions]
    named = sum(1 << i for i, name in enumerate(ACTIONS) if any(p.matches(name.lower()) for p in patterns))
    return ALL_WAYS & ~named if statement.not_action else named


def _anyone_meets(condition: tuple[str, str, tuple[str, ...]]) -> bool:
    """True if everybody can send a request that meets the condition (operator, key, values). Two kinds of condition are
    known to be such: one requires TLS, the other a version of TLS that exists.
    """
    operator, key, values = condition
    match operator.removesuffix("IfExists"), key.lower():
        case "Bool", "aws:securetransport":
            return any(value.lower() == "true" for value in values)
        case "NumericGreaterThanEquals", "s3:tlsversion":
            return any(re.fullmatch(r"\d+(\.\d+)?", value) and float(value) <= NEWEST_TLS for value in values)
    return False


def _covers(text: str, variables: bool) -> Wildcard:
    """Return the pattern that a Resource sets for "BUCKET/KEY". text: the Resource, "arn:PARTITION:s3:::BUCKET/KEY" or
    "*", whose `*` matches slashes too. variables: True if `${...}` in the text is a policy variable.

    The ARN of another service gives a pattern that matches nothing. A malformed ARN, and one with a variable, a region,
    an account or a wildcard for the service, give a pattern that is not sure: its matches are only possible.
    """
    if text and not text.strip("*"):
        return _EVERY_OBJECT
    parts = text.split(":", 5)
    head = parts[:5]
    if len(parts) < 6 or parts[0] != "arn" or "$" in "".join(head):
        return replace(_EVERY_OBJECT, sure=False)
    wildcard = Wildcard.of(parts[5], variables=variables)
    # An object's ARN has no region and no account. Ceph writes a tenant there, which the facts do not name.
    plain = parts[2] == "s3" and not "".join(parts[3:5]).strip("*")
    if not Wildcard.of(parts[2]).matches("s3"):
        return Wildcard.of("")
    return replace(wildcard, sure=wildcard.sure and plain)
