"""The lines of a run folder, parsed, for tests that look at single members."""

from __future__ import annotations

import json
from typing import Any

from auditor.runs.reading import RunReader


def run_lines(run: RunReader, kind: str) -> list[dict[str, Any]]:
    """Return the lines of one kind: "objects", "findings", "undecided" or "routed"."""
    return [json.loads(line) for line in run.lines(kind)]
