"""A table for a terminal: the verdict, the coverage, the groups of the run, its holes and its exit code."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.summary import Summary
from auditor.reports.formats.base import PLAIN, FormatOptions, RunLines
from auditor.reports.highlights import Highlights
from auditor.reports.table import render


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the table. The lines are read only if the run has no roll-ups."""
    how, rollups = options or PLAIN, lines.rollups()
    shown = Highlights.read(lines, summary.verdicts["exposed"]) if rollups is None else None
    yield render(summary, how.fail_on, shown, how.columns, rollups=rollups, colour=how.colour)
