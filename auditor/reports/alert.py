"""Make the alert and the event on an audit, and the alert on an event of S3: counts and prefixes, never keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from auditor.model.access import Verdict, told_verdicts
from auditor.model.alert import LONGEST, Alert, AlertSection, Phrase, Quoted, RunEvent
from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.model.finding import FailOn, RuleUndecided, Severity
from auditor.model.json_codec import plain
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.model.run_lines import first_prefix
from auditor.model.summary import ChangeKind, Changes, Summary, UnreadCount
from auditor.reports import groups
from auditor.reports.changes import cause_words
from auditor.reports.channel_texts import event_detail, short
from auditor.reports.phrases import began
from auditor.reports.summary import FRESH, UNCHECKED, counting, exit_code, exposed, failed_of, holes, new_findings
from auditor.text import counted, harmless

GROUPS: Final = 15
"""Largest number of groups, or of prefixes, in an alert."""
_UNREAD: Final = 10
_RULES: Final = 20
_EXPIRED: Final = 10
_CAUSES: Final = 5
AUDIT_FINISHED: Final = "S3 Audit Finished"
_ITEMS: Final = 50
"""Largest number of items in each list of an event's detail."""


class AlertReasons(Struct, frozen=True, kw_only=True):
    """The reasons for an alert on one audit. Without any of them, the run is quiet."""

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

    def words(self, holes: Sequence[str]) -> tuple[str, ...]:
        """Return the reasons in words, the gravest first; () if the run is quiet. holes: those that auditor.toml does
        not accept, in words.
        """
        new, newly = ("new ", "newly ") if self.compared else ("", "")
        number, worse = sum(self.findings.values()), sum(self.worsened.values())
        each = ", ".join(f"{count:,} {severity}" for severity, count in self.findings.items())
        found = (
            (self.exposed, f"{counted(self.exposed, 'object')} {newly}exposed"),
            (worse, f"{counted(worse, 'object')} worsened"),
            (number, f"{counted(number, f'{new}finding')} ({each})"),
            (len(self.expired), f"{counted(len(self.expired), 'exception')} expired"),
        )
        return (*(words for count, words in found if count), *holes)


def reasons_of(summary: Summary, fail_on: Severity | FailOn | None) -> AlertReasons:
    """Return the reasons for an alert on a finished audit.

    fail_on: the severity from which findings count; None if findings and verdicts are no reason.
    """
    changes, expired = summary.changes, _expired(summary)
    compared = changes.against is not None
    if fail_on is None:
        return AlertReasons(expired=expired, compared=compared)
    least = fail_on.severity if isinstance(fail_on, FailOn) else fail_on
    severities = [one for one in Severity if one.at_least(least)]
    if not compared:
        known = {one.value: number for one in severities if (number := counting(summary, one))}
        return AlertReasons(findings=known, exposed=exposed(summary), expired=expired, compared=False)
    fresh = new_findings(changes)
    worsened = {verdict: kinds.get(ChangeKind.WORSENED, 0) for verdict, kinds in changes.verdicts.items()}
    return AlertReasons(
        findings={one.value: fresh[one.value] for one in severities if fresh.get(one.value)},
        exposed=sum(changes.verdicts.get(Verdict.EXPOSED, {}).get(kind, 0) for kind in FRESH),
        worsened={verdict: number for verdict, number in worsened.items() if number and verdict != Verdict.EXPOSED},
        expired=expired,
    )


def _expired(summary: Summary) -> tuple[ExceptionUse, ...]:
    """Return the exceptions that expired since the last complete run; all expired ones if there is none."""
    moment = began(summary.changes.against or "")
    last = moment.date().isoformat() if moment else ""
    return tuple(one for one in summary.exceptions if one.state is ExceptionState.EXPIRED and one.until >= last)


def alert_of(
    summary: Summary, rollups: RollUps | None, fail_on: Severity | FailOn | None, notes: Sequence[str] = ()
) -> Alert | None:
    """Return the alert on a finished audit; None if it is quiet: nothing new, nothing worse, no hole.

    rollups: the run's roll-ups; None if it has none. fail_on: the severity from which findings count; None if findings
    and verdicts are no reason for an alert. notes: further sentences that are each a reason.
    """
    reasons = reasons_of(summary, fail_on)
    said = reasons.words(holes(summary, UNCHECKED))
    if not said and not notes:
        return None
    target = summary.target
    words = "; ".join(said) or counted(len(notes), "remark")
    sections = [
        AlertSection(("The audit of ", Quoted(f"s3://{target.bucket}/{target.prefix}"), f": {words}.")),
        *_sections(summary, rollups, reasons, fail_on),
        *(AlertSection((Quoted(note, LONGEST),)) for note in notes),
        AlertSection(("Report: ", Quoted(f"{summary.out}/report.html", 400))),
    ]
    title = ("S3 audit of ", Quoted(target.bucket), f": {words}")
    return Alert(title=title, sections=tuple(sections), bucket=target.bucket, run=summary.run)


def renewal_alert(bucket: str, run: str, exposed: Sequence[str]) -> Alert | None:
    """Return the alert on objects that an event of S3 made exposed since the last run; None if there are none.

    run: ID of the last run. exposed: the keys of the objects.
    """
    if not exposed:
        return None
    words = f"{counted(len(exposed), 'object')} newly exposed"
    prefixes = Counter(map(first_prefix, exposed)).most_common()
    below = [(Quoted(prefix or "(no prefix)"), f": {number:,}") for prefix, number in prefixes]
    heading = ("In ", Quoted(f"s3://{bucket}"), f": {words}, as S3's events say. By prefix:")
    sections = (
        section_of(heading, below, GROUPS, "prefix"),
        AlertSection(("The next audit will report their findings; `auditor explain` says who can reach one.",)),
    )
    return Alert(title=("S3 events of ", Quoted(bucket), f": {words}"), sections=sections, bucket=bucket, run=run)


def event_of(summary: Summary, fail_on: Severity | FailOn | None, notes: Sequence[str] = ()) -> RunEvent:
    """Return the event on a finished audit for EventBridge, of a bounded size. The arguments: as for alert_of()."""
    words = (*reasons_of(summary, fail_on).words(holes(summary)), *notes)
    failed = {short(code): number for code, number in list(failed_of(summary).items())[:_ITEMS]}
    detail = {
        **event_detail(summary.run, summary.target, f"{summary.out}/report.html", words),
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
        "changes": _bounded(summary.changes).to_dict(),
        "hashing": None if summary.hashing is None else {**summary.hashing.counts, "failed": failed},
        "seconds": summary.seconds,
    }
    return RunEvent(AUDIT_FINISHED, detail)


def _facts(one: RuleUndecided | UnreadCount) -> dict[str, Any]:
    return {**asdict(one), "action": short(one.action), "code": short(one.code)}


def _bounded(changes: Changes) -> Changes:
    causes = tuple(replace(cause, change=short(cause.change)) for cause in changes.causes[:_ITEMS])
    return replace(changes, causes=causes, why_not=None if changes.why_not is None else short(changes.why_not))


def section_of(heading: Phrase, items: Sequence[Phrase], most: int, noun: str = "group") -> AlertSection:
    """Return a section with the first `most` items. noun: of an item."""
    return AlertSection(heading, tuple(items[:most]), max(0, len(items) - most), noun)


def _sections(
    summary: Summary, rollups: RollUps | None, reasons: AlertReasons, fail_on: Severity | FailOn | None
) -> Iterator[AlertSection]:
    if summary.nothing_listed:
        yield AlertSection(("Nothing is listed under the prefix: is it right?",))
    kinds = ((), ()) if rollups is None else (groups.openings(rollups), groups.findings(rollups))
    opened, found = ([group for group in kind if _is_told(group, reasons, fail_on)] for kind in kinds)
    if opened or found:
        heading = "New or worsened, the worst first:" if reasons.compared else "Found, the worst first:"
        first, then = groups.first_of(opened, found, GROUPS)
        items = tuple(_group(group, reasons.compared) for group in (*first, *then))
        yield AlertSection((heading,), items, len(opened) + len(found) - len(items))
    yield from _holes(summary, rollups)
    if reasons.expired:
        heading = "Exceptions that have expired. The objects that they covered count again:"
        yield section_of((heading,), [_exception(one) for one in reasons.expired], _EXPIRED, "exception")
    yield from _changes(summary)
    coverage = summary.coverage
    verdicts = ", ".join(f"{verdict} {number:,}" for verdict, number in told_verdicts(summary.verdicts).items())
    yield AlertSection(
        (
            f"Listed {coverage.listed:,}, audited {coverage.audited:,}, vanished {coverage.vanished:,},"
            f" undecided {coverage.undecided:,}; {verdicts}.",
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
    known, failed = summary.accepted, failed_of(summary)
    found = [] if rollups is None else groups.undecided(rollups)
    undecided: list[Phrase] = [_lacking(one.count, one.audience or "", one) for one in found]
    undecided = undecided or [_lacking(one.count, f"{one.action} {one.code}") for one in summary.unread]
    rules: list[Phrase] = [(f"{one.rule}: ", Quoted(f"{one.action} {one.code}")) for one in summary.rules_undecided]
    codes = [_lacking(number, code) for code, number in failed.items()]
    for noun, number, accepted, verb, items, most, of in (
        ("object", summary.coverage.undecided, known.undecided, "checked", undecided, _UNREAD, "group"),
        ("rule", len(rules), known.rules, "checked", rules, _RULES, "rule"),
        ("object", sum(failed.values()), sum(known.hashing.values()), "hashed", codes, _UNREAD, "code"),
    ):
        if number > accepted:
            some = f" ({accepted:,} of them accepted)" if accepted else ""
            yield section_of((f"{counted(number, noun)} could not be {verb}{some}:",), items, most, of)
    if summary.resume is not None and summary.resume.reason:
        yield AlertSection(("The listing did not reach its end: ", Quoted(summary.resume.reason, 400)))


def _lacking(number: int, fact: str, group: Group | None = None) -> Phrase:
    return (f"{counted(number, 'object')}: ", Quoted(fact), *((",", *_place(group)) if group else ()))


def _exception(one: ExceptionUse) -> Phrase:
    return (Quoted(one.id), " of ", Quoted(one.owner), f", until {one.until}: it would cover {one.matched:,}")


def _changes(summary: Summary) -> Iterator[AlertSection]:
    changes = summary.changes
    counts = ", ".join(f"{number:,} {kind}" for kind, number in changes.classes.items() if number)
    if changes.against is not None:
        moved = [(harmless(cause_words(one)),) for one in changes.causes]
        told = f"{counts} (verdicts and findings)" if counts else "no change"
        yield section_of((f"Since the last run, {changes.against}: {told}.",), moved, _CAUSES, "cause")
    if changes.why_not:
        yield AlertSection(("Not compared in full: ", Quoted(changes.why_not, 400)))
