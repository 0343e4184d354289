"""Say the result of an audit in one sentence, which the page, the terminal and a comment share."""

from __future__ import annotations

from enum import StrEnum

from auditor.model.access import Verdict
from auditor.model.summary import ChangeKind, Changes, Summary
from auditor.reports.summary import alarming, has_hole
from auditor.text import counted


class Alarm(StrEnum):
    """How bad a run's result is."""

    BAD = "bad"
    """Strangers get in without an exception, or a finding is critical or high."""
    DOUBT = "doubt"
    """Something is not known, or another party gets in."""
    GOOD = "good"
    """Everything was looked at, and nobody else gets in, but by exception."""


def verdict_sentence(summary: Summary) -> str:
    """Return the sentence as text."""
    return "".join(sentence_parts(summary, _exposed_by_intent(summary), new_exposed(summary)))


def sentence_parts(summary: Summary, intended: int, new: int | None) -> tuple[str, str, str]:
    """Return the sentence as the words before its number, the number with its noun, and the words after it.

    intended: number of exposed objects that an exception covers. new: number of exposed objects that the last run did
    not have; None if that is not known.
    """
    verdicts, listed = summary.verdicts, summary.coverage.listed
    exposed = verdicts[Verdict.EXPOSED] - intended
    meant = f" but {counted(intended, 'object')} by intent" if intended else ""
    cut = "Not complete. " if not summary.complete else ""
    if not listed:
        return f"{cut}No object is listed", "", "."
    if exposed:
        fresh = f" {new:,} of them {'is' if new == 1 else 'are'} new." if new else ""
        return f"{cut}Strangers can get at ", counted(exposed, "object"), f".{fresh}"
    if unknown := verdicts[Verdict.UNKNOWN]:
        noun = "object" if unknown == 1 else "objects"
        return f"{cut}No object is known to be exposed{meant}, and of ", f"{unknown:,} {noun}", " it is not known."
    if shared := verdicts[Verdict.SHARED]:
        verb = "is" if shared == 1 else "are"
        return f"{cut}No object is exposed{meant}. ", counted(shared, "object"), f" {verb} shared with others."
    seen = "No object that was looked at is" if not summary.complete else "No object is"
    return f"{cut}{seen} open to strangers or to other accounts{meant}", "", "."


def alarm(summary: Summary) -> Alarm:
    """Return how bad the result is. A run that did not look at everything is never good."""
    exposed = summary.verdicts[Verdict.EXPOSED] - _exposed_by_intent(summary)
    if exposed or alarming(summary):
        return Alarm.BAD
    open_ = summary.verdicts[Verdict.UNKNOWN] or summary.verdicts[Verdict.SHARED]
    return Alarm.DOUBT if open_ or has_hole(summary) or not summary.coverage.listed else Alarm.GOOD


def new_objects(changes: Changes) -> dict[str, int] | None:
    """Return the number of objects that got their verdict since the last run, by verdict; None if it is not known."""
    if changes.against is None:
        return None
    kinds = (ChangeKind.NEW, ChangeKind.WORSENED, ChangeKind.UNCOVERED)
    return {verdict: sum(changes.verdicts.get(verdict, {}).get(kind, 0) for kind in kinds) for verdict in Verdict}


def new_exposed(summary: Summary) -> int | None:
    """Return the number of objects that are exposed since the last run; None if it is not known."""
    found = new_objects(summary.changes)
    return None if found is None else found[Verdict.EXPOSED]


def _exposed_by_intent(summary: Summary) -> int:
    return summary.excepted.verdicts.get(Verdict.EXPOSED, 0)
