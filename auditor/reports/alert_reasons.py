"""Decide if a run is worth an alert: something new or worse, a hole, or an exception that has expired."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.model.finding import FailOn, Severity
from auditor.model.summary import ChangeKind, Summary
from auditor.reports.summary import counting, holes, new_findings
from auditor.runs.paths import parse_run_id
from auditor.text import counted

_FRESH = (ChangeKind.NEW, ChangeKind.DECIDED, ChangeKind.UNCOVERED)


class AlertReasons(Struct, frozen=True, kw_only=True):
    """The reasons for an alert on one audit. Without any of them, the run is quiet."""

    holes: tuple[str, ...] = ()
    """The holes that auditor.toml does not accept, in words."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Number of new findings by severity, of the severities that `fail_on` asks for, worst first."""
    exposed: int = 0
    """Number of objects that are newly exposed."""
    worsened: Mapping[str, int] = field(default_factory=dict)
    """Number of other objects whose verdict is wider than before, by their verdict."""
    expired: tuple[ExceptionUse, ...] = ()
    """The exceptions that held in the last complete run of the target, and do not hold any more."""
    compared: bool = True
    """False if there is no earlier run to compare with: each finding and each exposed object then counts as new."""

    @property
    def words(self) -> tuple[str, ...]:
        """The reasons in words, the gravest first; () if the run is quiet."""
        new, newly = ("new ", "newly ") if self.compared else ("", "")
        number = sum(self.findings.values())
        each = ", ".join(f"{count:,} {severity}" for severity, count in self.findings.items())
        worse = sum(self.worsened.values())
        found = (
            (self.exposed, f"{counted(self.exposed, 'object')} {newly}exposed"),
            (worse, f"{counted(worse, 'object')} worsened"),
            (number, f"{counted(number, f'{new}finding')} ({each})"),
            (len(self.expired), f"{counted(len(self.expired), 'exception')} expired"),
        )
        return (*(words for count, words in found if count), *self.holes)


def reasons_of(summary: Summary, fail_on: Severity | FailOn | None) -> AlertReasons:
    """Return the reasons for an alert on a finished audit.

    fail_on: the severity from which findings count; None if findings and verdicts are no reason.
    """
    compared = summary.changes.against is not None
    shown = fail_on is not None
    return AlertReasons(
        holes=tuple(holes(summary)),
        findings={} if fail_on is None else _findings(summary, fail_on, compared),
        exposed=_exposed(summary, compared) if shown else 0,
        worsened=_worsened(summary) if shown else {},
        expired=_expired(summary),
        compared=compared,
    )


def _findings(summary: Summary, fail_on: Severity | FailOn, compared: bool) -> dict[str, int]:
    least = fail_on.severity if isinstance(fail_on, FailOn) else fail_on
    new = new_findings(summary.changes) if compared else None
    counts = {one.value: counting(summary, one) if new is None else new.get(one.value, 0) for one in Severity}
    return {one.value: counts[one.value] for one in Severity if one.at_least(least) and counts[one.value]}


def _exposed(summary: Summary, compared: bool) -> int:
    if not compared:
        return summary.verdicts[Verdict.EXPOSED] - summary.excepted.verdicts.get(Verdict.EXPOSED, 0)
    kinds = summary.changes.verdicts.get(Verdict.EXPOSED, {})
    return sum(kinds.get(kind, 0) for kind in (*_FRESH, ChangeKind.WORSENED))


def _worsened(summary: Summary) -> dict[str, int]:
    found = {verdict: kinds.get(ChangeKind.WORSENED, 0) for verdict, kinds in summary.changes.verdicts.items()}
    return {verdict: number for verdict, number in found.items() if number and verdict != Verdict.EXPOSED}


def _expired(summary: Summary) -> tuple[ExceptionUse, ...]:
    """Return the exceptions that expired since the last complete run; all expired ones if there is none."""
    try:
        last = "" if summary.changes.against is None else parse_run_id(summary.changes.against).date().isoformat()
    except UsageError:
        last = ""
    expired = (one for one in summary.exceptions if one.state is ExceptionState.EXPIRED)
    return tuple(one for one in expired if one.until >= last)
