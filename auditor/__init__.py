"""Audit S3 buckets from Python: who can read each object, how it is protected, and if its bytes are what they were.

A public name is imported from its module when it is first used, so that `import auditor` takes almost no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from auditor.model import version

__version__ = version.VERSION

if TYPE_CHECKING:
    from auditor.audit.library import audit_bucket, audit_bucket_async, explain, explain_async
    from auditor.audit.offline import check_run, judge_run, what_if
    from auditor.audit.what_if import WhatIf
    from auditor.config.settings import Settings
    from auditor.errors import AuditorError
    from auditor.hashing.library import hash_bucket, hash_bucket_async
    from auditor.hashing.run import HashRunSummary
    from auditor.model.access import Verdict
    from auditor.model.bucket import BucketFacts, PublicAccessBlock
    from auditor.model.changes import ChangeKind
    from auditor.model.finding import Finding, Judgement, Severity
    from auditor.model.object import Acl, Evidence, Grant, Head, ObjectRef, Skipped, Unread
    from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
    from auditor.model.summary import Summary
    from auditor.progress import Snapshot
    from auditor.reports.diff import RunChange, diff
    from auditor.reports.explain import Explanation
    from auditor.rules import RULES
    from auditor.rules.judge import judge
    from auditor.runs.checking import RunCheck
    from auditor.runs.run import Run, open_run
    from auditor.verdict.judge import access_of, verdict_of
    from auditor.verify.library import verify_bucket, verify_bucket_async
    from auditor.verify.summary import VerifySummary

_HOMES: Final = {
    "Acl": "model.object",
    "AuditorError": "errors",
    "BucketFacts": "model.bucket",
    "RunChange": "reports.diff",
    "ChangeKind": "model.changes",
    "Evidence": "model.object",
    "Explanation": "reports.explain",
    "Finding": "model.finding",
    "FindingLine": "model.run_lines",
    "Grant": "model.object",
    "HashRunSummary": "hashing.run",
    "Head": "model.object",
    "Judgement": "model.finding",
    "ObjectLine": "model.run_lines",
    "ObjectRef": "model.object",
    "PublicAccessBlock": "model.bucket",
    "RULES": "rules",
    "Run": "runs.run",
    "RunCheck": "runs.checking",
    "Settings": "config.settings",
    "Severity": "model.finding",
    "Skipped": "model.object",
    "Snapshot": "progress",
    "Summary": "model.summary",
    "UndecidedLine": "model.run_lines",
    "Unread": "model.object",
    "Verdict": "model.finding",
    "VerifySummary": "verify.summary",
    "WhatIf": "audit.what_if",
    "access_of": "verdict.judge",
    "audit_bucket": "audit.library",
    "audit_bucket_async": "audit.library",
    "check_run": "audit.offline",
    "diff": "reports.diff",
    "explain": "audit.library",
    "explain_async": "audit.library",
    "hash_bucket": "hashing.library",
    "hash_bucket_async": "hashing.library",
    "judge": "rules.judge",
    "judge_run": "audit.offline",
    "open_run": "runs.run",
    "verdict_of": "verdict.judge",
    "verify_bucket": "verify.library",
    "verify_bucket_async": "verify.library",
    "what_if": "audit.offline",
}
"""The module of each public name."""

__all__ = [
    "RULES",
    "Acl",
    "AuditorError",
    "BucketFacts",
    "ChangeKind",
    "Evidence",
    "Explanation",
    "Finding",
    "FindingLine",
    "Grant",
    "HashRunSummary",
    "Head",
    "Judgement",
    "ObjectLine",
    "ObjectRef",
    "PublicAccessBlock",
    "Run",
    "RunChange",
    "RunCheck",
    "Settings",
    "Severity",
    "Skipped",
    "Snapshot",
    "Summary",
    "UndecidedLine",
    "Unread",
    "Verdict",
    "VerifySummary",
    "WhatIf",
    "access_of",
    "audit_bucket",
    "audit_bucket_async",
    "check_run",
    "diff",
    "explain",
    "explain_async",
    "hash_bucket",
    "hash_bucket_async",
    "judge",
    "judge_run",
    "open_run",
    "verdict_of",
    "verify_bucket",
    "verify_bucket_async",
    "what_if",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
