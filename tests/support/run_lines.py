"""The lines of a run folder, parsed, for tests that look at single members."""

from __future__ import annotations

import json
from typing import Any

from auditor.runs.parts import part_lines
from auditor.runs.reading import RunReader


def run_lines(run: RunReader, kind: str) -> list[dict[str, Any]]:
    """Return the lines of one kind: "objects", "findings", "undecided" or "routed"."""
    files = [parts[kind] for _, parts in run.by_part() if kind in parts]
    return [json.loads(line) for one in files for line in part_lines(run.store, run.path, one)]
