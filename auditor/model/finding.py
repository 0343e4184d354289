"""The results of an audit for one object or the bucket: findings, the verdict, and undecided rules."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from json.encoder import encode_basestring_ascii as _quote_ascii

from msgspec import Struct

from auditor.model.access import ObjectAccess, Verdict
from auditor.model.object import Evidence


class Severity(StrEnum):
    """The severity of a finding, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    def at_least(self, other: Severity) -> bool:
        order = list(Severity)
        return order.index(self) <= order.index(other)


class FailOn(Struct, frozen=True):
    """The findings that make an exit code 3: those of one severity or a worse one. new: True for only those findings
    that the last complete run of the target lacks. The text form is "high" or "new:high".
    """

    severity: Severity
    new: bool = False

    def __str__(self) -> str:
        return f"new:{self.severity}" if self.new else self.severity.value


class Finding(Struct, frozen=True):
    """One violation of a rule, by an object or by the bucket (key None). A finding has no metadata values or display
    names.
    """

    fingerprint: str
    rule: str
    severity: Severity
    key: str | None
    version_id: str | None
    grantee: str | None
    permission: str | None
    message: str


class RuleUndecided(Struct, frozen=True):
    """A rule that a run could not judge. Either the rule needs a bucket fact that could not be read; then it is
    undecided for every object. Or the verdict of an object is unknown, or S3 does not show a fact that decides. action:
    the API operation that failed or that would show the fact, or "Verdict". code: the error code, or "Unknown".
    """

    rule: str
    action: str
    code: str


class Judgement(Struct, frozen=True):
    """The results of judging one object. access: None if the object was deleted after it was listed.

    undecided: IDs of the rules that could not be judged. unanswered: the undecided rules without a failed call: the
    verdict is unknown, or S3 does not show the deciding fact. unstored: IDs of the rules that could not be judged
    again, because the run folder lacks a value that they need.
    """

    evidence: Evidence
    access: ObjectAccess | None
    findings: tuple[Finding, ...]
    undecided: tuple[str, ...]
    unanswered: tuple[RuleUndecided, ...] = ()
    unstored: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        return self.access.verdict if self.access else None


def fingerprint(
    bucket: str,
    key: str | None,
    rule: str,
    grantee: str | None,
    permission: str | None,
    version_id: str | None = None,
) -> str:
    """Return the 32 hex digits that identify a finding in every run. version_id: None unless the run lists versions.

    The digits are the first half of the SHA-256 of the arguments, which are written as a compact ASCII JSON list. The
    list leaves out a version_id of None.
    """
    parts = [bucket, key, rule, grantee, permission]
    if version_id is not None:
        parts.append(version_id)
    text = ",".join(["null" if part is None else _quote_ascii(part) for part in parts])
    return hashlib.sha256(f"[{text}]".encode("ascii")).hexdigest()[:32]
