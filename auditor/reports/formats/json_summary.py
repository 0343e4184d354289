"""JSON: the summary of the run, on one line."""

from __future__ import annotations

import json
from collections.abc import Iterator

from auditor.model.summary import Summary
from auditor.reports.formats.base import FormatOptions, RunLines


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the summary as summary.json has it. The lines are not read."""
    yield json.dumps(summary.to_dict()) + "\n"
