"""Metrics of a run as one line of CloudWatch's embedded metric format: counts, never names of objects.

CloudWatch reads these lines from Lambda's log (CloudWatch User Guide, "Specification: Embedded metric format").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from auditor.model.finding import Verdict
from auditor.model.summary import Summary

NAMESPACE: Final = "S3Auditor"
DIMENSION: Final = "Service"
UNITS: Final = {
    "Objects": "Count",
    "Undecided": "Count",
    "Exposed": "Count",
    "FindingsCritical": "Count",
    "FindingsHigh": "Count",
    "FindingsMedium": "Count",
    "FindingsLow": "Count",
    "FindingsInfo": "Count",
    "Throttled": "Count",
    "Seconds": "Seconds",
    "RunsComplete": "Count",
    "RunsIncomplete": "Count",
    "RunsFailed": "Count",
    "RunsHandedOn": "Count",
    "Verified": "Count",
    "Mismatches": "Count",
    "Missing": "Count",
    "Changed": "Count",
    "Deleted": "Count",
    "New": "Count",
    "Unreadable": "Count",
    "VerificationHoles": "Count",
    "VerifiedBytes": "Bytes",
    "VerificationsComplete": "Count",
    "VerificationsIncomplete": "Count",
    "VerificationsFailed": "Count",
    "VerificationsHandedOn": "Count",
}
"""CloudWatch's unit of every metric."""


def of_run(summary: Summary, *, handed_on: bool) -> dict[str, float]:
    """Return a run's metrics. A run that is handed over counts its objects and calls only once, at its end."""
    if handed_on:
        return {"RunsHandedOn": 1}
    findings = {f"Findings{severity.capitalize()}": number for severity, number in summary.findings.items()}
    return {
        "Objects": summary.coverage.listed,
        "Undecided": summary.coverage.undecided,
        "Exposed": summary.verdicts[Verdict.EXPOSED],
        **findings,
        "Throttled": summary.calls.throttled,
        "Seconds": summary.seconds,
        "RunsComplete": int(summary.complete),
        "RunsIncomplete": int(not summary.complete),
    }


def emf(values: Mapping[str, float], *, service: str, milliseconds: int, **properties: Any) -> str:
    """Return one line. milliseconds: since 1970. properties: values to search in the log, such as the run ID.

    CloudWatch charges nothing for properties.
    """
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [[DIMENSION]],
        "Metrics": [{"Name": name, "Unit": UNITS[name]} for name in values],
    }
    document = {
        "_aws": {"Timestamp": milliseconds, "CloudWatchMetrics": [directive]},
        DIMENSION: service,
        **properties,
        **values,
    }
    return json.dumps(document)
