"""Make the alert on an audit out of its summary and its roll-ups: counts and prefixes, never keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from auditor.model.access import Verdict, told_verdicts
from auditor.model.alert import LONGEST, Alert, AlertSection, Phrase, Quoted
from auditor.model.exception import ExceptionUse
from auditor.model.finding import FailOn, Severity
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.model.summary import Summary
from auditor.reports import groups
from auditor.reports.alert_reasons import AlertReasons, reasons_of
from auditor.reports.summary import failed_of
from auditor.text import counted, harmless

GROUPS: Final = 15
"""Largest number of groups in an alert."""
_UNREAD: Final = 10
_RULES: Final = 20
_EXPIRED: Final = 10
_CAUSES: Final = 5


def alert_of(
    summary: Summary, rollups: RollUps | None, fail_on: Severity | FailOn | None, notes: Sequence[str] = ()
) -> Alert | None:
    """Return the alert on a finished audit; None if it is quiet: nothing new, nothing worse, no hole.

    rollups: the run's roll-ups; None if it has none. fail_on: the severity from which findings count; None if findings
    and verdicts are no reason for an alert. notes: further sentences that are each a reason.
    """
    reasons = reasons_of(summary, fail_on)
    if not reasons.words and not notes:
        return None
    target = summary.target
    words = "; ".join(reasons.words) or counted(len(notes), "remark")
    name = Quoted(f"s3://{target.bucket}/{target.prefix}")
    sections = [
        AlertSection(("The audit of ", name, f": {words}.")),
        *_sections(summary, rollups, reasons, fail_on),
        *(AlertSection((Quoted(note, LONGEST),)) for note in notes),
        AlertSection(("Report: ", Quoted(f"{summary.out}/report.html", 400))),
    ]
    title = ("S3 audit of ", Quoted(target.bucket), f": {words}")
    return Alert(title=title, sections=tuple(sections), bucket=target.bucket, run=summary.run)


def _sections(
    summary: Summary, rollups: RollUps | None, reasons: AlertReasons, fail_on: Severity | FailOn | None
) -> Iterator[AlertSection]:
    if summary.nothing_listed:
        yield AlertSection(("The prefix lists nothing: is it right?",))
    kinds = ((), ()) if rollups is None else (groups.openings(rollups), groups.findings(rollups))
    opened, found = ([group for group in kind if _is_told(group, reasons, fail_on)] for kind in kinds)
    if opened or found:
        heading = ("New or worsened, the worst first:" if reasons.compared else "Found, the worst first:",)
        first, then = groups.first_of(opened, found, GROUPS)
        items = tuple(_group(group, reasons.compared) for group in (*first, *then))
        yield AlertSection(heading, items, len(opened) + len(found) - len(items))
    yield from _holes(summary, rollups)
    if reasons.expired:
        items = tuple(_exception(one) for one in reasons.expired[:_EXPIRED])
        heading = ("Exceptions that expired, so that what they covered counts again:",)
        yield AlertSection(heading, items, len(reasons.expired) - len(items), "exception")
    yield from _changes(summary)
    coverage = summary.coverage
    yield AlertSection(
        (
            f"Listed {coverage.listed:,}, audited {coverage.audited:,}, vanished {coverage.vanished:,},"
            f" undecided {coverage.undecided:,};"
            f" {', '.join(f'{verdict} {number:,}' for verdict, number in told_verdicts(summary.verdicts).items())}.",
        )
    )


def _is_told(group: Group, reasons: AlertReasons, fail_on: Severity | FailOn | None) -> bool:
    """True if the alert names the group: it has something new that is a reason."""
    if fail_on is None or group.count <= group.excepted or (reasons.compared and not group.new):
        return False
    if group.kind is GroupKind.FINDING:
        return group.severity is not None and group.severity.value in reasons.findings
    if group.verdict is None:
        return False
    return bool(reasons.exposed) if group.verdict is Verdict.EXPOSED else group.verdict.value in reasons.worsened


def _group(group: Group, compared: bool) -> Phrase:
    """Return the line of a group: its rule, its sentence, its place, and how many are new or meant."""
    said, others = groups.sentence(group), groups.audience(group)
    severity = f"{group.rule} ({group.severity.value}): " if group.severity else ""
    who: Phrase = (Quoted(said.who), " ") if said.who else ()
    rest = replace(said, who="").text
    open_to: Phrase = (", open to ", Quoted(others)) if group.rule and others and others not in rest.lower() else ()
    aside = [groups.new_words(group)] if compared and group.new else []
    aside += [f"{group.excepted:,} by intent"] if group.excepted else []
    return (severity, *who, rest, *open_to, *_place(group), f" ({', '.join(aside)})" if aside else "")


def _place(group: Group) -> Phrase:
    if groups.is_of_bucket(group):
        return ()
    words, prefix = groups.place(group)
    return (f" {words}", Quoted(prefix)) if prefix else (f" {words}",)


def _holes(summary: Summary, rollups: RollUps | None) -> Iterator[AlertSection]:
    undecided, known = summary.coverage.undecided, summary.accepted
    if undecided > known.undecided:
        found = [] if rollups is None else groups.undecided(rollups)
        items: tuple[Phrase, ...] = tuple(_lacking(one.count, one.audience or "", one) for one in found[:_UNREAD])
        items = items or tuple(_lacking(one.count, f"{one.action} {one.code}") for one in summary.unread[:_UNREAD])
        some = f" ({known.undecided:,} of them accepted)" if known.undecided else ""
        more = max(0, (len(found) or len(summary.unread)) - len(items))
        yield AlertSection((f"{counted(undecided, 'undecided object')}{some}:",), items, more)
    if len(summary.rules_undecided) > known.rules:
        items = tuple((f"{one.rule}: ", Quoted(f"{one.action} {one.code}")) for one in summary.rules_undecided[:_RULES])
        some = f" ({known.rules:,} of them accepted)" if known.rules else ""
        number = len(summary.rules_undecided)
        yield AlertSection((f"{counted(number, 'undecided rule')}{some}:",), items, number - len(items), "rule")
    failed, accepted = failed_of(summary), sum(known.hashing.values())
    if sum(failed.values()) > accepted:
        yield _not_hashed(failed, accepted)
    if summary.resume is not None and summary.resume.reason:
        yield AlertSection(("The listing did not reach its end: ", Quoted(summary.resume.reason, 400)))


def _lacking(number: int, fact: str, group: Group | None = None) -> Phrase:
    return (f"{counted(number, 'object')}: ", Quoted(fact), *((",", *_place(group)) if group else ()))


def _not_hashed(failed: Mapping[str, int], accepted: int) -> AlertSection:
    codes = list(failed.items())[:_UNREAD]
    items: tuple[Phrase, ...] = tuple((f"{counted(number, 'object')}: ", Quoted(code)) for code, number in codes)
    some = f" ({accepted:,} of them accepted)" if accepted else ""
    heading = f"{counted(sum(failed.values()), 'object')} not hashed{some}:"
    return AlertSection((heading,), items, len(failed) - len(items), "code")


def _exception(one: ExceptionUse) -> Phrase:
    return (Quoted(one.id), " of ", Quoted(one.owner), f", until {one.until}: it would cover {one.matched:,}")


def _changes(summary: Summary) -> Iterator[AlertSection]:
    changes = summary.changes
    counts = ", ".join(f"{number:,} {kind}" for kind, number in changes.classes.items() if number)
    if changes.against is not None:
        items: tuple[Phrase, ...] = tuple(
            (f"{harmless(cause.change)}: moved {counted(cause.objects, 'object')}",)
            for cause in changes.causes[:_CAUSES]
        )
        rest = len(changes.causes) - len(items)
        told = f"{counts} (verdicts and findings)" if counts else "no change"
        yield AlertSection((f"Since the last run, {changes.against}: {told}.",), items, rest, "cause")
    if changes.why_not:
        yield AlertSection(("Not compared in full: ", Quoted(changes.why_not, 400)))
