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
    """The audience that can reach one object today. If several verdicts apply, the first in this order counts."""

    EXPOSED = "exposed"
    UNKNOWN = "unknown"
    SHARED = "shared"
    MASKED = "masked"
    PRIVATE = "private"


@record()
class Finding:
    """One rule's finding on one object, or on the bucket (key None), without metadata values and display names."""

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
    """A selected rule that is undecided for the whole run: the call `action` for a bucket fact failed with `code`."""

    rule: str
    action: str
    code: str


@record()
class Judgement:
    """The results for one object. verdict: None if it vanished. undecided: IDs of the rules that lacked a fact."""

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
