"""Compare two runs in a process of its own: `python -m tests.support.compared_runs OLD NEW` prints counts and cost."""

from __future__ import annotations

import json
import sys
from collections import Counter

from auditor.reports.diff import Diff
from auditor.runs.run import Run
from benchmarks.meter import cpu_seconds, peak_memory


def main(old: str, new: str) -> None:
    work, found = Diff(Run(old), Run(new)), Counter[str]()
    for change in work.changes():
        found[f"{'verdict' if change.finding is None else 'finding'} {change.kind.value}"] += 1
    print(json.dumps({"found": found, "cpu": cpu_seconds(), "peak": peak_memory()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
