"""JSON: the summary of the run on one line, or its entries, one a line.

Text is in ASCII, so that no character of a key can be taken for the end of a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from auditor.model.summary import Summary
from auditor.offline.formats.base import COLUMNS, FormatOptions, RunLines, entries

_encode = json.JSONEncoder(separators=(",", ":")).encode


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the summary as summary.json has it. The lines are not read."""
    yield json.dumps(summary.to_dict()) + "\n"


def write_lines(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield a line for each entry of the run. Keys are unchanged: JSON's escapes stand for odd characters."""
    for entry in entries(summary, lines):
        yield _encode({name: getattr(entry, name) for name in COLUMNS}) + "\n"
