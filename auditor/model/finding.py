"""The result of the rules for one object or the bucket: findings, the verdict, and undecided rules."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from json.encoder import encode_basestring_ascii as _quote_ascii

from auditor.model.object import Evidence
from auditor.model.record import record


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    def at_least(self, other: Severity) -> bool:
        order = list(Severity)
        return order.index(self) <= order.index(other)


class Verdict(StrEnum):
    """Who can reach one object today; where several apply, the first of this order."""

    EXPOSED = "exposed"
    UNKNOWN = "unknown"
    SHARED = "shared"
    MASKED = "masked"
    PRIVATE = "private"


@record()
class Finding:
    """One rule's word on one object, or on the bucket (key None). Never holds metadata values or display names."""

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
    """A selected rule that could not be judged for the whole run, because a bucket fact could not be read."""

    rule: str
    action: str
    code: str


@record()
class Judgement:
    """What the rules say of one object. undecided: ids of the rules that lacked a fact."""

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
    """32 hex digits that stay the same from run to run. version_id: only where versions are audited.

    It is the beginning of the SHA-256 of the arguments as a compact ASCII JSON list, the version left out when None.
    """
    parts = [bucket, key, rule, grantee, permission]
    if version_id is not None:
        parts.append(version_id)
    text = ",".join(["null" if part is None else _quote_ascii(part) for part in parts])
    return hashlib.sha256(f"[{text}]".encode("ascii")).hexdigest()[:32]
