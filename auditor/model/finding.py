"""The results of an audit for one object or the bucket: findings, the verdict, and undecided rules."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from json.encoder import encode_basestring_ascii as _quote_ascii

from auditor.model.object import Evidence
from auditor.model.record import record


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


class Verdict(StrEnum):
    """The widest audience that can reach one object today, the widest first. If several apply, the first counts."""

    EXPOSED = "exposed"
    UNKNOWN = "unknown"
    SHARED = "shared"
    MASKED = "masked"
    PRIVATE = "private"


@record()
class Finding:
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


@dataclass(frozen=True, slots=True)
class RuleUndecided:
    """A rule that a run could not judge for any object, because it needs a bucket fact that could not be read. action:
    the API operation that failed. code: its error code.
    """

    rule: str
    action: str
    code: str


@record()
class Judgement:
    """The results of judging one object. verdict: None if the object was deleted after it was listed. undecided: IDs of
    the rules that could not be judged, because a fact could not be read.
    """

    evidence: Evidence
    verdict: Verdict | None
    findings: tuple[Finding, ...]
    undecided: tuple[str, ...]


def fingerprint(
    bucket: str,
    key: str | None,
    rule: str,
    grantee: str | None,
    permission: str | None,
    version_id: str | None = None,
) -> str:
    """Return the 32 hex digits that identify a finding in every run. version_id: None unless the run lists versions.

    The digits are the first half of the SHA-256 of the arguments, written as a compact ASCII JSON list. A version_id of
    None is left out of the list.
    """
    parts = [bucket, key, rule, grantee, permission]
    if version_id is not None:
        parts.append(version_id)
    text = ",".join(["null" if part is None else _quote_ascii(part) for part in parts])
    return hashlib.sha256(f"[{text}]".encode("ascii")).hexdigest()[:32]
