"""The section on the changes since the last complete run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from auditor.model.summary import ChangeKind, Changes
from auditor.reports import words
from auditor.reports.page.data import ChangeCard
from auditor.text import counted

_KINDS: Final = (
    (ChangeKind.NEW, "+", "new", "They were private, or were not there."),
    (ChangeKind.WORSENED, "+", "worsened", "More can get in than before."),
    (ChangeKind.IMPROVED, "−", "improved", "Fewer can get in than before, and still some."),
    (ChangeKind.RESOLVED, "−", "resolved", "Read again, and private now, or without the finding."),
    (ChangeKind.GONE, "", "gone", "Deleted. They do not count as resolved."),
    (ChangeKind.UNREAD, "", "not looked at again", "A fact could not be read, or the listing did not come to them."),
    (ChangeKind.DECIDED, "", "decided", "The last run could not tell; they may be older."),
    (ChangeKind.EXCEPTED, "", "covered by an exception", "They were not in the last run."),
    (ChangeKind.UNCOVERED, "+", "no longer covered", "An exception covered them in the last run."),
)


def heading(changes: Changes) -> str:
    """Return the heading of the section; "" if the run says nothing of changes."""
    if changes.against is None:
        return "Since the last run" if changes.why_not else ""
    moment = words.began(changes.against)
    return f"Since the run of {moment.day} {moment:%B %Y, %H:%M} UTC" if moment else "Since the last run"


def unchanged(changes: Changes) -> str:
    """Return the sentence on a comparison that was not made, or that found nothing; "" if there are changes."""
    if changes.why_not:
        return f"{changes.why_not[:1].upper()}{changes.why_not[1:]}."
    return "" if changes.against is None or any(changes.classes.values()) else "Nothing has changed."


def change_cards(changes: Changes) -> Iterator[ChangeCard]:
    """Yield a card for each kind of change that occurs: its number of objects, then of findings."""
    for kind, sign, name, text in _KINDS:
        objects = {verdict: counts.get(kind, 0) for verdict, counts in changes.verdicts.items()}
        findings = {severity: counts.get(kind, 0) for severity, counts in changes.findings.items()}
        number = sum(objects.values())
        of_findings = (
            f"{counted(sum(findings.values()), 'finding')}: {_each(findings)}." if any(findings.values()) else ""
        )
        if number:
            yield ChangeCard(sign, number, f"{name}: {_each(objects)}", f"{text} {of_findings}".strip())
        elif of_findings:
            yield ChangeCard(sign, sum(findings.values()), f"{name} (findings)", f"{_each(findings)}.")


def _each(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)


def causes(changes: Changes) -> tuple[str, ...]:
    """Return a sentence for each change of the bucket or of the configuration."""
    return tuple(f"{cause.change}: moved {counted(cause.objects, 'object')}" for cause in changes.causes)
