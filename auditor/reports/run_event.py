"""Make the event on a finished audit for EventBridge: counts, never keys, and of a bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import asdict, replace

from auditor.model.alert import SHORT, RunEvent
from auditor.model.finding import FailOn, RuleUndecided, Severity
from auditor.model.json_codec import plain
from auditor.model.summary import Changes, Summary, UnreadCount
from auditor.model.target import Target
from auditor.reports.alert_reasons import reasons_of
from auditor.reports.summary import exit_code, failed_of
from auditor.text import shorten, visible

AUDIT_FINISHED: Final = "S3 Audit Finished"
FORM: Final = 1
"""Version of the form of an event's detail."""
_ITEMS: Final = 50
"""Largest number of items in each list of the detail."""


def event_of(summary: Summary, fail_on: Severity | FailOn | None, notes: Sequence[str] = ()) -> RunEvent:
    """Return the event on a finished audit. The arguments are those of alert_of()."""
    words = (*reasons_of(summary, fail_on).words, *notes)
    detail = {
        **detail_of(summary.run, summary.target, f"{summary.out}/report.html", words),
        "engine": summary.engine,
        "complete": summary.complete,
        "exit_code": exit_code(summary, fail_on),
        "coverage": plain(summary.coverage),
        "verdicts": dict(summary.verdicts),
        "findings": dict(summary.findings),
        "rules": dict(list(summary.rules.items())[:_ITEMS]),
        "excepted": plain(summary.excepted),
        "accepted": plain(summary.accepted),
        "rules_undecided": [_facts(one) for one in summary.rules_undecided[:_ITEMS]],
        "unread": [_facts(one) for one in summary.unread[:_ITEMS]],
        "changes": _changes(summary.changes),
        "hashing": None if summary.hashing is None else {**summary.hashing.counts, "failed": _codes(summary)},
        "seconds": summary.seconds,
    }
    return RunEvent(AUDIT_FINISHED, detail)


def detail_of(run: str, target: Target, report: str, reasons: Sequence[str]) -> dict[str, Any]:
    """Return the part of a detail that audits and verifications have in common.

    report: the address of the report. reasons: the reasons for an alert, in words; () if the run is quiet. The keys of
    a range are left out.
    """
    return {
        "v": FORM,
        "run": run,
        "target": {
            "bucket": target.bucket,
            "prefix": target.prefix,
            "versions": target.versions,
            "whole": target.whole,
        },
        "report": report,
        "alert": bool(reasons),
        "reasons": list(reasons),
    }


def _facts(one: RuleUndecided | UnreadCount) -> dict[str, Any]:
    return {**asdict(one), "action": short(one.action), "code": short(one.code)}


def _codes(summary: Summary) -> dict[str, int]:
    return {short(code): number for code, number in list(failed_of(summary).items())[:_ITEMS]}


def _changes(changes: Changes) -> dict[str, Any]:
    causes = tuple(replace(cause, change=short(cause.change)) for cause in changes.causes[:_ITEMS])
    why_not = None if changes.why_not is None else short(changes.why_not)
    return replace(changes, causes=causes, why_not=why_not).to_dict()


def short(text: str) -> str:
    """Return the text of a server, such as an error code, printable and shortened."""
    return shorten(visible(text), SHORT)
