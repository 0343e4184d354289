"""Read the grants of a run's objects that a bucket policy can carry, key by key, and count the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from auditor.model.access import Verdict
from auditor.model.bucket import Semantics
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, PUBLIC_GROUPS, Acl, Outcome
from auditor.model.run_lines import FindingLine, ObjectLine
from auditor.runs.reading import RunReader
from auditor.text import counted

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
    LeftOut.UNCLEAR: "have grants of a permission that is not known",
}
UNINTENDED: Final = frozenset({LeftOut.PUBLIC, LeftOut.WRITE_ACP})
"""The reasons by which nobody loses what he is to keep."""


class KitObject(NamedTuple):
    """An object of the run. excepted: the public grants that an exception of a rule accepts. excepted_rules: IDs of the
    rules with a finding that an exception accepts.
    """

    line: ObjectLine
    excepted: frozenset[GrantName]
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
    none: frozenset[GrantName] = frozenset()
    for _, files in run.by_part():
        excepted: dict[tuple[str, str | None], set[GrantName]] = {}
        rules: dict[tuple[str, str | None], set[str]] = {}
        for found in run.part(FindingLine, files.get("findings")):
            if not found.exception or found.key is None:
                continue
            rules.setdefault((found.key, found.version_id), set()).add(found.rule)
            if found.grantee in PUBLIC and found.permission:
                excepted.setdefault((found.key, found.version_id), set()).add((found.grantee, found.permission))
        for line in run.part(ObjectLine, files.get("objects")):
            names = excepted.get((line.key, line.version_id)) if excepted else None
            covered = rules.get((line.key, line.version_id), ())
            yield KitObject(line, frozenset(names) if names else none, frozenset(covered))


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
