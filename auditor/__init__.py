"""Audit S3 buckets from Python: who can read each object, how it is protected, and if its bytes are what they were.

A public name is imported from its module when it is first used, so that `import auditor` takes almost no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from auditor.model import version

__version__ = version.VERSION

if TYPE_CHECKING:
    from auditor.audit.compare_with_last import RunChange as RunChange
    from auditor.config.settings import Settings as Settings
    from auditor.errors import AuditorError as AuditorError
    from auditor.errors import BucketError as BucketError
    from auditor.errors import CredentialsError as CredentialsError
    from auditor.errors import LedgerError as LedgerError
    from auditor.errors import NotStored as NotStored
    from auditor.errors import OutputError as OutputError
    from auditor.errors import RunDamaged as RunDamaged
    from auditor.errors import RunError as RunError
    from auditor.errors import RunStopped as RunStopped
    from auditor.errors import UsageError as UsageError
    from auditor.hashing.run import HashRunSummary as HashRunSummary
    from auditor.model.access import Verdict as Verdict
    from auditor.model.bucket import BucketFacts as BucketFacts
    from auditor.model.bucket import PublicAccessBlock as PublicAccessBlock
    from auditor.model.finding import Finding as Finding
    from auditor.model.finding import Judgement as Judgement
    from auditor.model.finding import Severity as Severity
    from auditor.model.object import Acl as Acl
    from auditor.model.object import Evidence as Evidence
    from auditor.model.object import Grant as Grant
    from auditor.model.object import Head as Head
    from auditor.model.object import ObjectRef as ObjectRef
    from auditor.model.object import Skipped as Skipped
    from auditor.model.object import Unread as Unread
    from auditor.model.run_lines import FindingLine as FindingLine
    from auditor.model.run_lines import ObjectLine as ObjectLine
    from auditor.model.run_lines import UndecidedLine as UndecidedLine
    from auditor.model.summary import ChangeKind as ChangeKind
    from auditor.model.summary import Summary as Summary
    from auditor.offline.check_run import RunCheck as RunCheck
    from auditor.offline.diff import diff as diff
    from auditor.offline.explanation import Explanation as Explanation
    from auditor.offline.library.audits import audit_bucket as audit_bucket
    from auditor.offline.library.audits import audit_bucket_async as audit_bucket_async
    from auditor.offline.library.audits import audit_buckets as audit_buckets
    from auditor.offline.library.audits import audit_buckets_async as audit_buckets_async
    from auditor.offline.library.audits import explain as explain
    from auditor.offline.library.audits import explain_async as explain_async
    from auditor.offline.library.fixity import hash_bucket as hash_bucket
    from auditor.offline.library.fixity import hash_bucket_async as hash_bucket_async
    from auditor.offline.library.fixity import verify_bucket as verify_bucket
    from auditor.offline.library.fixity import verify_bucket_async as verify_bucket_async
    from auditor.offline.library.run import Run as Run
    from auditor.offline.library.run import open_run as open_run
    from auditor.offline.library.runs import check_run as check_run
    from auditor.offline.library.runs import judge_run as judge_run
    from auditor.offline.library.runs import what_if as what_if
    from auditor.offline.what_if import WhatIf as WhatIf
    from auditor.progress import Snapshot as Snapshot
    from auditor.rules import RULES as RULES
    from auditor.rules.judge import judge as judge
    from auditor.verdict.judge import access_of as access_of
    from auditor.verdict.judge import verdict_of as verdict_of
    from auditor.verify.summary import VerifySummary as VerifySummary

_PUBLIC: Final = {
    "offline.library.audits": (
        "audit_bucket",
        "audit_bucket_async",
        "audit_buckets",
        "audit_buckets_async",
        "explain",
        "explain_async",
    ),
    "offline.library.runs": ("check_run", "judge_run", "what_if"),
    "offline.what_if": ("WhatIf",),
    "config.settings": ("Settings",),
    "errors": (
        "AuditorError",
        "BucketError",
        "CredentialsError",
        "LedgerError",
        "NotStored",
        "OutputError",
        "RunDamaged",
        "RunError",
        "RunStopped",
        "UsageError",
    ),
    "hashing.run": ("HashRunSummary",),
    "model.access": ("Verdict",),
    "model.bucket": ("BucketFacts", "PublicAccessBlock"),
    "model.finding": ("Finding", "Judgement", "Severity"),
    "model.object": ("Acl", "Evidence", "Grant", "Head", "ObjectRef", "Skipped", "Unread"),
    "model.run_lines": ("FindingLine", "ObjectLine", "UndecidedLine"),
    "model.summary": ("ChangeKind", "Summary"),
    "progress": ("Snapshot",),
    "audit.compare_with_last": ("RunChange",),
    "offline.diff": ("diff",),
    "offline.explanation": ("Explanation",),
    "rules": ("RULES",),
    "rules.judge": ("judge",),
    "offline.check_run": ("RunCheck",),
    "offline.library.run": ("Run", "open_run"),
    "verdict.judge": ("access_of", "verdict_of"),
    "offline.library.fixity": ("hash_bucket", "hash_bucket_async", "verify_bucket", "verify_bucket_async"),
    "verify.summary": ("VerifySummary",),
}
"""The public names of each module."""

_HOMES: Final = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
