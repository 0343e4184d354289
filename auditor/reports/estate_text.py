"""Describe the result of an estate: as text for a terminal, and as one alert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from auditor.model.alert import LONGEST, Alert, AlertSection, Phrase, Quoted
from auditor.model.estate import BucketOutcome, BucketResult, EstateReport
from auditor.model.exception import ExceptionState
from auditor.reports.alert import section_of
from auditor.text import counted, visible

_LISTED: Final = 50
"""Largest number of buckets of one outcome that the terminal lists; estate.json has all."""
_TOLD: Final = 20
"""Largest number of items of a list in the alert."""


def estate_text(report: EstateReport) -> str:
    """Return the text: what was left out, the holes, the remarks, and the line that adds up."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: EstateReport) -> Iterator[str]:
    yield from _named("excluded", _of(report, BucketOutcome.EXCLUDED))
    yield from _named("hole", _of(report, BucketOutcome.HOLE))
    for account in report.accounts:
        if account.hole is not None:
            yield f"hole: {visible(account.hole)}"
    for note in report.notes:
        yield visible(note)
    yield f"not looked at: {report.not_looked_at[0]}"
    yield report.line


def _named(word: str, buckets: Sequence[BucketResult]) -> Iterator[str]:
    for one in buckets[:_LISTED]:
        yield f"{word}: {visible(one.bucket)}: {visible(one.sentence)}"
    if len(buckets) > _LISTED:
        yield f"{word}: {counted(len(buckets) - _LISTED, 'more bucket')}, in estate.json"


def _of(report: EstateReport, outcome: BucketOutcome) -> list[BucketResult]:
    return [one for one in report.buckets if one.outcome is outcome]


def estate_alert(report: EstateReport, alerts: Sequence[Alert], page: str) -> Alert | None:
    """Return the one alert on an estate; None if it is quiet: no hole, no expired exclusion, and no run worth an alert.

    alerts: those of its runs. page: URI of the index page.
    """
    expired = [use for use in report.exclusions if use.state is ExceptionState.EXPIRED and use.matched]
    if report.complete and not alerts and not expired:
        return None
    lost = [one for one in report.accounts if one.hole is not None]
    missed = [(Quoted(one.bucket), ": ", Quoted(one.sentence, 400)) for one in _of(report, BucketOutcome.HOLE)]
    over = [(Quoted(use.decision), f", until {use.until}: ", Quoted(use.owner)) for use in expired]
    lists: tuple[tuple[str, Sequence[Phrase], str], ...] = (
        ("Accounts whose buckets are not all known:", [(Quoted(one.hole or "", LONGEST),) for one in lost], "account"),
        ("Buckets that were not audited, or not completely:", missed, "bucket"),
        ("Runs:", [alert.sections[0].heading for alert in alerts], "run"),
        ("Exclusions that expired, so that their buckets were audited:", over, "exclusion"),
    )
    sections = [
        AlertSection((f"{report.line}.",)),
        *(section_of((heading,), items, _TOLD, noun) for heading, items, noun in lists if items),
        AlertSection(("Report: ", Quoted(page, 400))),
    ]
    return Alert(title=(f"S3 audit: {report.line}",), sections=tuple(sections))
