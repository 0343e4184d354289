"""The counts of a target's last complete runs, night by night. A night without a complete run is shown as missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Final

from auditor.errors import OutputError
from auditor.model.record import record
from auditor.model.summary import Summary
from auditor.runs.paths import parse_run_id
from auditor.runs.reading import RunReader

NIGHTS: Final = 30
"""Number of days that a trend goes back."""


@record()
class TrendNight:
    """One day of a trend, in UTC, with the counts of its last complete run; None if there was no such run."""

    day: str
    """The day, such as 2026-01-02."""
    run: str | None = None
    verdicts: Mapping[str, int] | None = None
    findings: Mapping[str, int] | None = None
    undecided: int | None = None
    listed: int | None = None


def trend(summary: Summary, earlier: RunReader | None, nights: int = NIGHTS) -> tuple[TrendNight, ...]:
    """Return the nights up to the run of `summary`, the oldest first, without those before the first known run. Blocks.

    earlier: the complete run before it; None if there is none. Each run names the one before it in its seal, so that a
    run costs two files. A run that cannot be read ends the row.
    """
    last = _day(summary.run)
    found: dict[date, Summary] = {last: summary}
    for one in _before(earlier, summary.run, last - timedelta(nights - 1)):
        found.setdefault(_day(one.run), one)
    days = (last - min(found)).days
    return tuple(_night(day, found.get(day)) for day in (last - timedelta(back) for back in range(days, -1, -1)))


def _before(run: RunReader | None, later: str, first: date) -> Iterator[Summary]:
    """Yield the summaries of the complete runs before the run `later`, the latest first. first: the day to end with."""
    while run is not None and run.run_id < later and _day(run.run_id) >= first:
        try:
            if run.summary is None or not run.summary.complete:
                return
            yield run.summary
            later, run = run.run_id, run.previous
        except OutputError:
            return


def _day(run_id: str) -> date:
    return parse_run_id(run_id).date()


def _night(day: date, summary: Summary | None) -> TrendNight:
    if summary is None:
        return TrendNight(day.isoformat())
    coverage = summary.coverage
    return TrendNight(
        day.isoformat(), summary.run, summary.verdicts, summary.findings, coverage.undecided, coverage.listed
    )
