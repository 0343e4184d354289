"""The counts of a target's last complete runs, night by night. A night without a complete run is shown as missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

from auditor.errors import OutputError
from auditor.model.rollup import TrendNight
from auditor.model.summary import Summary
from auditor.runs.paths import began_later, parse_run_id
from auditor.runs.reading import RunReader

NIGHTS: Final = 30
"""Number of days that a trend goes back."""


def trend(summary: Summary, earlier: RunReader | None, nights: int = NIGHTS) -> tuple[TrendNight, ...]:
    """Return the nights up to the run of `summary`, the oldest first, without those before the first known run. Blocks.

    earlier: the complete run before it; None if there is none. Its rollups.json has the nights before it, so that two
    files are read. A run that cannot be read ends the row. If the run of `summary` is not complete, its own night is
    missing.
    """
    last = parse_run_id(summary.run).date()
    first = last - timedelta(nights - 1)
    found: dict[date, TrendNight] = {last: _night(summary) if summary.complete else TrendNight(last.isoformat())}
    for one in _before(earlier, summary.run):
        day = date.fromisoformat(one.day)
        if first <= day <= last and (day not in found or found[day].run is None):
            found[day] = one
    days = (last - min(found)).days
    each = (last - timedelta(back) for back in range(days, -1, -1))
    return tuple(found.get(day) or TrendNight(day.isoformat()) for day in each)


def nights_of(run: RunReader) -> tuple[TrendNight, ...]:
    """Return the nights in the rollups.json of a run, or () if they cannot be read. Blocks."""
    try:
        return run.nights
    except OutputError:
        return ()


def _before(run: RunReader | None, later: str) -> Iterator[TrendNight]:
    """Yield the nights of the complete runs before the run `later`, the latest first."""
    if run is None or began_later(run.run_id, later):
        return
    with suppress(OutputError):
        if run.summary is not None and run.summary.complete:
            yield _night(run.summary)
            yield from _known(run.nights)


def _known(nights: tuple[TrendNight, ...]) -> Iterator[TrendNight]:
    """Yield the nights that have a run, the latest first. A night whose day is no day is left out."""
    for night in reversed(nights):
        if day_of(night) is not None and night.run is not None and night.verdicts is not None:
            yield night


def day_of(night: TrendNight) -> date | None:
    """Return the day of a night; None if the text of the file is no day."""
    with suppress(ValueError):
        return date.fromisoformat(night.day)
    return None


def _night(summary: Summary) -> TrendNight:
    return TrendNight(
        parse_run_id(summary.run).date().isoformat(),
        summary.run,
        summary.verdicts,
        summary.findings,
        summary.coverage.undecided,
        summary.coverage.listed,
        summary.excepted.verdicts,
    )
