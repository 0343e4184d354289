"""Write the statements of a bucket policy that allow the same as grants of ACLs, merged with the present policy."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from auditor.audit.kit.cover import Cover
from auditor.audit.kit.grants import PUBLIC, Carried
from auditor.aws.iam.arns import Arns
from auditor.model.bucket import Semantics
from auditor.model.object import AUTHENTICATED_USERS
from auditor.text import visible
from auditor.verdict.change import MOST_BYTES

PREFIXES: Final = 1000
"""Largest number of first folders whose patterns are counted apart."""
_MOST: Final = 2 * MOST_BYTES
"""Characters of patterns that are kept. With more, the policy is too large anyway."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SPECIAL: Final = re.compile(r"[*?$]")
_2012: Final = "2012-10-17"
_SIGNED: Final = {"StringNotEquals": {"aws:PrincipalType": "Anonymous"}}

Statement = dict[str, Any]


class PolicyDraft(NamedTuple):
    """A policy made of the present one and of the grants. text: None if there is none to put, and `reasons` say why.

    size: bytes of the policy; None if the patterns are so many that it was not made. added: number of statements that
    the present policy does not have.
    """

    text: str | None
    size: int | None
    added: int
    reasons: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Sentences on keys that the policy does not name."""
    nothing: bool = False
    """True if the present policy has all that is to be carried."""

    @property
    def lacking(self) -> tuple[str, ...]:
        """Sentences on a policy that is needed and is not there."""
        return () if self.nothing else self.reasons


def no_policy(reason: str) -> PolicyDraft:
    """Return the draft without a policy. reason: a sentence."""
    return PolicyDraft(None, None, 0, (reason,))


class PolicyWriter:
    """Collects covers of grants, and makes the policy. present: text of the bucket policy, "" if there is none."""

    def __init__(self, bucket: str, arns: Arns, semantics: Semantics, present: str) -> None:
        self._bucket = bucket
        self._arns = arns
        self._semantics = semantics
        self._document: dict[str, Any] = json.loads(present) if present else {"Version": _2012, "Statement": []}
        if isinstance(self._document["Statement"], dict):
            self._document["Statement"] = [self._document["Statement"]]
        self._escapes = semantics is not Semantics.CEPH and ("${" not in present or self._is_new)
        self._covers: dict[Carried, list[Cover]] = {}
        self._size = 0
        self._count = 0
        self._folders: Counter[str] = Counter()
        self._special = 0
        self._hidden = 0

    @property
    def _is_new(self) -> bool:
        return self._document.get("Version") == _2012

    def add(self, grant: Carried, cover: Cover) -> None:
        """Take a key or prefix that has the grant. A key that a policy cannot name is left out, and counted."""
        if _CONTROL.search(cover.text):
            self._hidden += 1
            return
        if _SPECIAL.search(cover.text) and not self._escapes:
            self._special += 1
            return
        self._count += 1
        folder = cover.text.partition("/")[0] + "/" if "/" in cover.text else ""
        self._folders[folder if folder in self._folders or len(self._folders) < PREFIXES else "others"] += 1
        self._size += len(cover.text) + len(self._bucket)
        if self._size <= _MOST:
            self._covers.setdefault(grant, []).append(cover)

    def draft(self) -> PolicyDraft:
        """Return the policy."""
        left_out = tuple(self._left_out())
        if self._size > _MOST:
            return PolicyDraft(None, None, 0, tuple(self._too_large(None)), left_out)
        statements = [one for one in self._statements() if not self._has(one)]
        if not statements:
            reasons = ("no grant has to be carried into the bucket policy",)
            return PolicyDraft(None, None, 0, reasons, left_out, nothing=True)
        document = {**self._document, "Statement": [*self._document["Statement"], *self._named(statements)]}
        if any(_SPECIAL.search(one.text) for covers in self._covers.values() for one in covers):
            document["Version"] = _2012
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        if len(text.encode()) > MOST_BYTES:
            text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        size = len(text.encode())
        if size > MOST_BYTES:
            return PolicyDraft(None, size, len(statements), tuple(self._too_large(size)), left_out)
        return PolicyDraft(text, size, len(statements), (), left_out)

    def _statements(self) -> Iterator[Statement]:
        """Yield the statements without Sids: the same keys with the same actions share one."""
        actions: dict[tuple[str, tuple[Cover, ...]], list[str]] = {}
        for grant in sorted(self._covers):
            covers = tuple(sorted(self._covers[grant]))
            actions.setdefault((grant.grantee, covers), []).append(grant.action)
        grantees: dict[tuple[str, tuple[str, ...], tuple[Cover, ...]], list[str]] = {}
        for (grantee, covers), names in actions.items():
            kind = grantee if grantee in PUBLIC else ""
            grantees.setdefault((kind, tuple(names), covers), []).append(grantee)
        for (kind, allowed, covers), who in grantees.items():
            statement: Statement = {
                "Effect": "Allow",
                "Principal": "*" if kind else self._principal(who),
                "Action": list(allowed),
                "Resource": [self._resource(one) for one in covers],
            }
            if kind == AUTHENTICATED_USERS:
                statement["Condition"] = _SIGNED
            yield statement

    def _principal(self, grantees: list[str]) -> dict[str, list[str]]:
        if self._semantics is not Semantics.CEPH:
            return {"CanonicalUser": grantees}
        found = []
        for grantee in grantees:
            tenant, _, user = grantee.rpartition("$")
            found.append(f"arn:aws:iam::{tenant}:user/{user}")
        return {"AWS": found}

    def _resource(self, cover: Cover) -> str:
        pattern = self._arns.objects(self._bucket, cover.text)
        return pattern if cover.is_prefix else pattern.removesuffix("*")

    def _has(self, statement: Statement) -> bool:
        """True if the present policy has the statement: an earlier kit was put."""
        return any({**one, "Sid": ""} == {**statement, "Sid": ""} for one in self._document["Statement"])

    def _named(self, statements: list[Statement]) -> Iterator[Statement]:
        taken = {one.get("Sid") for one in self._document["Statement"]}
        number = 0
        for statement in statements:
            stem = "PublicByIntent" if statement["Principal"] == "*" else "FromAcls"
            number += 1
            while f"{stem}{number}" in taken:
                number += 1
            yield {"Sid": f"{stem}{number}", **statement}

    def _too_large(self, size: int | None) -> Iterator[str]:
        needed = f"about {self._size + 2:,}" if size is None else f"{size:,}"
        yield (
            f"the policy would need {needed} bytes, and S3 takes {MOST_BYTES:,}: the grants stand on"
            f" {_patterns(self._count)}"
        )
        for folder, number in sorted(self._folders.items(), key=lambda one: (-one[1], one[0]))[:5]:
            yield f"{visible(folder) or 'no folder'}: {number:,} of them"

    def _left_out(self) -> Iterator[str]:
        if self._special:
            yield (
                f"{_patterns(self._special)} with *, ? or $: not in the policy, because"
                + (
                    " this server knows no escapes for them"
                    if self._semantics is Semantics.CEPH
                    else " the present policy has variables in the old Version 2008-10-17, which knows no escapes"
                )
            )
        if self._hidden:
            yield f"{_patterns(self._hidden)} with control characters: not in the policy"


def _patterns(number: int) -> str:
    return "1 key or prefix" if number == 1 else f"{number:,} keys or prefixes"
