"""A table for a terminal: the verdict, the coverage, the groups of the run, its holes and its exit code."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.summary import Summary
from auditor.reports.formats.base import PLAIN, FormatOptions, RunLines
from auditor.reports.table import render


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the table. No line is read."""
    how = options or PLAIN
    yield render(summary, how.fail_on, how.columns, rollups=lines.rollups(), colour=how.colour)
