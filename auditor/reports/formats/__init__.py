"""The formats in which a run is written for other programs, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from auditor.reports.formats import csv_rows, json_lines, json_summary, markdown, ocsf
from auditor.reports.formats.base import Format

FORMATS: Final[Mapping[str, Format]] = {
    "json": json_summary.write,
    "jsonl": json_lines.write,
    "csv": csv_rows.write,
    "markdown": markdown.write,
    "ocsf": ocsf.write,
}
"""Each format by its name."""
