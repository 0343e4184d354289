"""A process that audits ranges for a benchmark: auditor.audit.range_worker, and it notes the CPU that it took."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from auditor.audit import range_worker
from benchmarks.in_process import Objects, engine
from benchmarks.meter import cpu_seconds

OBJECTS: Final = "BENCHMARK_OBJECTS"
"""The variable with the number of objects in the process; not set if a server has them."""
NOTES: Final = "BENCHMARK_NOTES"
"""The variable with the folder in which the process notes its CPU seconds."""
PUBLIC: Final = 100
"""Anybody can read one object in so many."""


def main() -> None:
    """Audit the ranges that stdin orders. The note counts the imports and the start of Python, too."""
    objects = os.environ.get(OBJECTS)
    with nullcontext() if objects is None else engine(Objects(int(objects), PUBLIC)):
        range_worker.main()
    Path(os.environ[NOTES], str(os.getpid())).write_text(json.dumps(cpu_seconds()))
