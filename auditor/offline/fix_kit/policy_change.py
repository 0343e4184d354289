"""Carry the grants of ACLs into a bucket policy: read those of a run's objects that a policy can have, key by key, and
count the others; write statements that allow the same, merged with the present policy.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, NamedTuple

from auditor.model.access import Verdict
from auditor.model.bucket import Semantics
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, PUBLIC_GROUPS, Acl, Outcome
from auditor.model.run_lines import FindingLine, ObjectLine
from auditor.offline.fix_kit.prefix_cover import Cover
from auditor.offline.iam.policy import Arns
from auditor.runs.reading import RunReader
from auditor.text import counted, visible
from auditor.verdict.change import MOST_BYTES

PUBLIC: Final = PUBLIC_GROUPS | {ANONYMOUS_OWNER}
"""The grantees that stand for everyone, or for any AWS account."""
_NAME: Final = re.compile(r"[^\s*?{}:/\"\\]+")
"""The form of a canonical ID, and of a user of another server, that a policy takes as it is."""
READING: Final = frozenset({"READ", "READ_ACP"})
_PERMISSIONS: Final = {"FULL_CONTROL": ("READ", "READ_ACP", "WRITE_ACP"), "WRITE": ()}
_ACTIONS: Final = {"READ": "s3:GetObject", "READ_ACP": "s3:GetObjectAcl"}
_OF_VERSIONS: Final = {"s3:GetObject": "s3:GetObjectVersion", "s3:GetObjectAcl": "s3:GetObjectVersionAcl"}

GrantName = tuple[str, str]
"""The grantee and the permission of a grant."""


class Carried(NamedTuple):
    """An action that a policy is to allow a grantee. grantee: a canonical ID, or the URI of a public group."""

    grantee: str
    action: str


class LeftOut(StrEnum):
    """The reason for which a grant is not carried into the policy."""

    PUBLIC = "public"
    WRITE_ACP = "write-acp"
    SIGNED = "signed"
    GROUP = "group"
    VERSION = "version"
    INTENDED = "intended"
    UNCLEAR = "unclear"


_LEFT_OUT: Final[Mapping[LeftOut, str]] = {
    LeftOut.PUBLIC: "have grants to everyone or to any AWS account that no exception covers: they are not carried",
    LeftOut.WRITE_ACP: "have grants to change the ACL: not carried, because without ACLs there is nothing to change",
    LeftOut.SIGNED: "have grants to any AWS account on purpose: this server's policies cannot say that",
    LeftOut.GROUP: "have grants to a group or a name that no policy can hold",
    LeftOut.VERSION: "are versions with a grant that not every version of the key has: by version ID it is not carried",
    LeftOut.INTENDED: "are public on purpose by a grant that is not carried: without ACLs they are closed",
    LeftOut.UNCLEAR: "have grants with an unknown permission",
}
UNINTENDED: Final = frozenset({LeftOut.PUBLIC, LeftOut.WRITE_ACP})
"""The reasons by which nobody loses what he is to keep."""


class KitObject(NamedTuple):
    """An object of the run. excepted: the public grants that an exception of a rule accepts. excepted_rules: IDs of the
    rules with a finding that an exception accepts.
    """

    line: ObjectLine
    excepted: frozenset[GrantName] = frozenset()
    excepted_rules: frozenset[str] = frozenset()

    @property
    def public(self) -> frozenset[GrantName]:
        """The grants of the object to everyone or to any AWS account."""
        acl = self.line.acl
        return _public(acl) if isinstance(acl, Acl) else frozenset()

    @property
    def intended(self) -> frozenset[GrantName]:
        """The public grants that are on purpose, by an exception of the verdict or of a rule. Only grants that open the
        object today count: an exception of one that something hides says not that it is to be open.
        """
        if self.line.verdict is not Verdict.EXPOSED:
            return frozenset()
        if self.line.exception is None:
            return self.public & self.excepted if self.excepted else self.excepted
        return frozenset(one for one in self.public if one[1] in READING) | (self.public & self.excepted)

    @property
    def is_intended(self) -> bool:
        """True if the object is exposed, and an exception covers all that makes it so."""
        if self.line.verdict is not Verdict.EXPOSED:
            return False
        return self.line.exception is not None or (bool(self.excepted) and self.public <= self.excepted)


@lru_cache(4096)
def _public(acl: Acl) -> frozenset[GrantName]:
    return frozenset((one.grantee, one.permission) for one in acl.grants if one.grantee in PUBLIC)


def kit_objects(run: RunReader) -> Iterator[KitObject]:
    """Yield the objects of a run in order, each with the exceptions that its findings name. Blocks."""
    for _, files in run.by_part():
        covered: dict[tuple[str, str | None], list[FindingLine]] = {}
        for found in run.part(FindingLine, files.get("findings")):
            if found.exception and found.key is not None:
                covered.setdefault((found.key, found.version_id), []).append(found)
        for line in run.part(ObjectLine, files.get("objects")):
            mine = covered.get((line.key, line.version_id), ())
            public = ((one.grantee, one.permission) for one in mine if one.grantee in PUBLIC and one.permission)
            yield KitObject(line, frozenset(public), frozenset(one.rule for one in mine)) if mine else KitObject(line)


def sentences(left_out: Mapping[LeftOut, int]) -> Iterator[str]:
    """Yield a sentence for each reason. left_out: number of objects by the reason."""
    for reason, number in left_out.items():
        if number:
            yield f"{counted(number, 'object')} {agreed(_LEFT_OUT[reason], number)}"


def agreed(words: str, number: int) -> str:
    """Return the words with their verb for one object or for many."""
    verb, _, rest = words.partition(" ")
    return f"{ {'have': 'has', 'are': 'is', 'belong': 'belongs'}[verb] if number == 1 else verb } {rest}"


class GrantReader:
    """Tells for each key the actions that a policy is to allow. own: canonical ID of the bucket's owner. versions: True
    if the run listed versions.
    """

    def __init__(self, own: str, semantics: Semantics, *, versions: bool) -> None:
        self._own = own
        self._semantics = semantics
        self._versions = versions
        self.left_out: Counter[LeftOut] = Counter()
        """Number of objects with such a grant."""
        self.carrying = 0
        """Number of objects with a grant that is carried."""
        self.of_acl = lru_cache(4096)(self._of_acl)

    def by_key(self, objects: Iterable[KitObject]) -> Iterator[tuple[str, frozenset[Carried]]]:
        """Yield each key with the actions. An object whose ACL is not known has none."""
        for key, versions in groupby(objects, key=lambda one: one.line.key):
            if self._versions:
                yield key, self._of_versions(list(versions))
            else:
                for one in versions:
                    yield key, self._of_object(one)

    def _of_object(self, one: KitObject) -> frozenset[Carried]:
        acl = one.line.acl
        if not isinstance(acl, Acl) or one.line.outcome is Outcome.VANISHED:
            return frozenset()
        carried, left_out = self.of_acl(acl, one.intended)
        self.left_out.update(left_out)
        if one.is_intended and one.public and not any(grant.grantee in PUBLIC for grant in carried):
            self.left_out[LeftOut.INTENDED] += 1
        self.carrying += bool(carried)
        return carried

    def _of_versions(self, versions: list[KitObject]) -> frozenset[Carried]:
        """Return the actions on the current version by its key, and on any version by its ID if all have the grant."""
        sets = [self._of_object(one) for one in versions]
        every = frozenset.intersection(*sets)
        current = next((found for one, found in zip(versions, sets, strict=True) if one.line.latest), every)
        self.left_out[LeftOut.VERSION] += sum(bool(found - every) for found in sets)
        return current | {Carried(one.grantee, _OF_VERSIONS[one.action]) for one in every}

    def _of_acl(self, acl: Acl, intended: frozenset[GrantName]) -> tuple[frozenset[Carried], frozenset[LeftOut]]:
        carried: set[Carried] = set()
        left_out: set[LeftOut] = set()
        for grant in acl.grants:
            if grant.grantee == self._own:
                continue
            reason = self._reason(grant.grantee, grant.permission, intended)
            if reason is not None:
                left_out.add(reason)
                continue
            grantee = ALL_USERS if grant.grantee == ANONYMOUS_OWNER else grant.grantee
            for permission in _PERMISSIONS.get(grant.permission, (grant.permission,)):
                if permission in _ACTIONS:
                    carried.add(Carried(grantee, _ACTIONS[permission]))
                else:
                    left_out.add(LeftOut.WRITE_ACP)
        return frozenset(carried), frozenset(left_out)

    def _reason(self, grantee: str, permission: str, intended: frozenset[GrantName]) -> LeftOut | None:
        """Return the reason for which a whole grant is not carried; None if it is."""
        if permission not in _PERMISSIONS and permission not in (*_ACTIONS, "WRITE_ACP"):
            return LeftOut.UNCLEAR
        if grantee in PUBLIC:
            if (grantee, permission) not in intended:
                return LeftOut.PUBLIC
            if grantee == AUTHENTICATED_USERS and self._semantics is not Semantics.AWS:
                return LeftOut.SIGNED
            if grantee == ANONYMOUS_OWNER and self._semantics is Semantics.CEPH:
                return LeftOut.GROUP
            return None
        return None if _NAME.fullmatch(grantee) else LeftOut.GROUP


PREFIXES: Final = 1000
"""Largest number of first folders whose patterns are counted separately."""
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
        names = (grantee.rpartition("$") for grantee in grantees)
        return {"AWS": [f"arn:aws:iam::{tenant}:user/{user}" for tenant, _, user in names]}

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
            f"the policy would need {needed} bytes, and S3 takes {MOST_BYTES:,}: the grants are on"
            f" {_patterns(self._count)}"
        )
        for folder, number in sorted(self._folders.items(), key=lambda one: (-one[1], one[0]))[:5]:
            yield f"{visible(folder) or 'no folder'}: {number:,} of them"

    def _left_out(self) -> Iterator[str]:
        if self._special:
            if self._semantics is Semantics.CEPH:
                reason = "this server has no escapes for them"
            else:
                reason = "the present policy has variables in the old Version 2008-10-17, which has no escapes"
            yield f"{_patterns(self._special)} with *, ? or $: not in the policy, because {reason}"
        if self._hidden:
            yield f"{_patterns(self._hidden)} with control characters: not in the policy"


def lacking(draft: PolicyDraft, grants: GrantReader) -> tuple[list[str], list[str]]:
    """Return sentences on the grants that the present policy does not carry, and on those that the kit's policy does
    not. An exposed object has grants to named accounts, too, which its audience does not show.
    """
    uncarried = {reason: number for reason, number in grants.left_out.items() if reason not in UNINTENDED}
    never = [*draft.left_out, *sentences(uncarried)]
    now = "have grants that the present policy does not carry"
    words = [f"{counted(grants.carrying, 'object')} {agreed(now, grants.carrying)}"]
    return [*(words if grants.carrying and not draft.nothing else ()), *never], [*draft.lacking, *never]


def _patterns(number: int) -> str:
    return "1 key or prefix" if number == 1 else f"{number:,} keys or prefixes"
