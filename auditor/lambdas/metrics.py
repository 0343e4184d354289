"""Write the metrics of a run as one line in CloudWatch's embedded metric format: counts, never object keys.

CloudWatch reads these lines from Lambda's log (CloudWatch User Guide, "Specification: Embedded metric format").
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from auditor.model.access import Verdict
from auditor.model.estate import EstateReport
from auditor.model.finding import Severity
from auditor.model.summary import Summary
from auditor.model.target import Target

NAMESPACE: Final = "S3Auditor"
DIMENSION: Final = "Service"
TARGET: Final = "Target"
OF_TARGET: Final = (
    "Objects",
    "Undecided",
    "Exposed",
    "RunsComplete",
    "Verified",
    "Mismatches",
    "Missing",
    "Lost",
    "VerificationsComplete",
)
"""Metrics that also exist for each target, with the dimensions Service and Target. CloudWatch charges for each
of them."""
_LONGEST: Final = 1024
"""Largest number of ASCII characters in a dimension's value (CloudWatch API: Dimension)."""
_DEFAULT_NAME: Final = "s3-auditor"
UNITS: Final = {
    **dict.fromkeys(OF_TARGET, "Count"),
    **{f"Findings{severity.value.capitalize()}": "Count" for severity in Severity},
    "Throttled": "Count",
    "Seconds": "Seconds",
    **{f"Runs{end}": "Count" for end in ("Incomplete", "Failed", "HandedOn")},
    **dict.fromkeys(("Changed", "Deleted", "New", "Unreadable", "VerificationHoles"), "Count"),
    "VerifiedBytes": "Bytes",
    **{f"Verifications{end}": "Count" for end in ("Incomplete", "Failed", "HandedOn")},
}
"""CloudWatch's unit of each metric."""


def of_run(summary: Summary | EstateReport) -> dict[str, float]:
    """Return the metrics for the end of an audit, by name.

    summary: that of the run's last invocation, the only one that counts all objects; or the report of a start.
    """
    findings = {f"Findings{severity.capitalize()}": number for severity, number in summary.findings.items()}
    throttled = {"Throttled": summary.calls.throttled} if isinstance(summary, Summary) else {}
    return {
        "Objects": summary.coverage.listed,
        "Undecided": summary.coverage.undecided,
        "Exposed": summary.verdicts[Verdict.EXPOSED],
        **findings,
        **throttled,
        "Seconds": summary.seconds,
        "RunsComplete": int(summary.complete),
        "RunsIncomplete": int(not summary.complete),
    }


def target_value(target: Target) -> str:
    """Return the value of the dimension Target: the target's bucket, and its prefix, if it has one, percent-encoded."""
    # These characters stay, as in JavaScript's encodeURIComponent, and the slash: deploy/parameters.js writes the same.
    prefix = quote(target.prefix, safe="/!~*'()")
    return (f"{target.bucket}/{prefix}" if prefix else target.bucket)[:_LONGEST]


def emf(
    environ: Mapping[str, str], values: Mapping[str, float], target: Target | None = None, **properties: Any
) -> str:
    """Return a line with these metrics, by name, in the embedded metric format.

    environ: has the name of the deployment, the value of the dimension Service. target: what the run worked on; None
    for a failed invocation. A run over a key range has no metrics of its target. properties: values such as the run's
    ID, by which people search the log; CloudWatch charges nothing for them.
    """
    service, milliseconds = environ.get("AUDITOR_SERVICE") or _DEFAULT_NAME, int(time.time() * 1000)
    directives = [_directive(values, DIMENSION)]
    document: dict[str, Any] = {DIMENSION: service, **properties, **values}
    if target is not None and target.whole and (own := [name for name in values if name in OF_TARGET]):
        directives.append(_directive(own, DIMENSION, TARGET))
        document[TARGET] = target_value(target)
    return json.dumps({"_aws": {"Timestamp": milliseconds, "CloudWatchMetrics": directives}, **document})


def _directive(names: Iterable[str], *dimensions: str) -> dict[str, Any]:
    metrics = [{"Name": name, "Unit": UNITS[name]} for name in names]
    return {"Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": metrics}
