"""OCSF 1.5.0: Compliance Findings (class 2003), one for each rule and severity, and for each missing fact.

Times are in milliseconds. An object that could not be looked at is in a finding whose compliance status is Unknown,
because it neither passed nor failed. The first event says how far the run looked, also if nothing is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from auditor.model.summary import Summary
from auditor.model.version import VERSION
from auditor.offline.formats.base import FormatOptions, RunLines, coverage_sentence, encodable, first_keys, sums_of
from auditor.reports import groups
from auditor.reports.summary import failed_of, has_hole
from auditor.runs.paths import parse_run_id
from auditor.text import counted

CLASS: Final = 2003
_CREATE: Final = 1
_STATUS: Final = {"Unknown": 0, "Pass": 1, "Fail": 3}
_SEVERITY: Final = {
    "info": (1, "Informational"),
    "low": (2, "Low"),
    "medium": (3, "Medium"),
    "high": (4, "High"),
    "critical": (5, "Critical"),
}
_UNKNOWN: Final = (0, "Unknown")


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the events as JSON, one a line."""
    for event in events(summary, lines):
        yield json.dumps(event, separators=(",", ":")) + "\n"


def events(summary: Summary, lines: RunLines) -> Iterator[dict[str, Any]]:
    """Yield the events. The sum of `count` over the failed ones is the summary's number of findings; the sum over those
    with an operation and an error is its number of undecided objects.
    """
    coverage = summary.coverage
    status = "Unknown" if has_hole(summary) else "Pass"
    yield _event(summary, status, _UNKNOWN, "coverage", coverage_sentence(summary), coverage.listed, ())
    for rule in summary.rules_undecided:
        text = f"Rule {rule.rule} lacks a fact of the bucket: {rule.action} {rule.code}"
        yield _event(summary, "Unknown", _UNKNOWN, rule.rule, text, 1, ())
    for code, number in failed_of(summary).items():
        text = f"{counted(number, 'object')} not hashed: {code}"
        yield _event(summary, "Unknown", _UNKNOWN, f"not hashed {code}", text, number, ())
    rollups = lines.rollups()
    for fact, lacking in sums_of(groups.undecided(rollups)):
        name = " ".join(filter(None, fact))
        text = f"{counted(lacking.count, 'object')} could not be looked at: {name}"
        yield _event(summary, "Unknown", _UNKNOWN, name, text, lacking.count, first_keys(lacking.samples))
    for (rule_id, severity), found in sums_of(groups.findings(rollups)):
        text = f"{counted(found.count, 'finding')} of rule {rule_id}"
        yield _event(summary, "Fail", _SEVERITY[severity], rule_id, text, found.count, first_keys(found.samples))


def _event(
    summary: Summary,
    status: str,
    severity: tuple[int, str],
    control: str,
    text: str,
    count: int,
    keys: Sequence[str],
) -> dict[str, Any]:
    bucket = summary.target.bucket
    identity = json.dumps([bucket, summary.target.prefix, status, severity[1], control])
    started = round(parse_run_id(summary.run).timestamp() * 1000)
    return {
        "activity_id": _CREATE,
        "activity_name": "Create",
        "category_uid": CLASS // 1000,
        "category_name": "Findings",
        "class_uid": CLASS,
        "class_name": "Compliance Finding",
        "type_uid": CLASS * 100 + _CREATE,
        "time": started,
        "severity_id": severity[0],
        "severity": severity[1],
        "count": count,
        "message": encodable(text),
        "metadata": {
            "version": "1.5.0",
            "correlation_uid": encodable(summary.run),
            "product": {"name": "s3-auditor", "vendor_name": "s3-auditor", "version": VERSION},
        },
        "finding_info": {
            "uid": hashlib.sha256(identity.encode()).hexdigest()[:32],
            "title": encodable(text),
            "created_time": started,
        },
        "compliance": {
            "control": encodable(control),
            "standards": ["s3-auditor rules"],
            "status": status,
            "status_id": _STATUS[status],
        },
        "resources": [
            {"type": "AWS::S3::Bucket", "uid": f"arn:aws:s3:::{bucket}", "name": bucket},
            *({"type": "AWS::S3::Object", "name": encodable(key)} for key in keys),
        ],
    }
