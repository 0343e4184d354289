"""Audit many small buckets by one command."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any, Final

from benchmarks.meter import Lap, Meter

_UNREACHED: Final = "1000000000"
"""A value of --max-calls that no run reaches. With a limit of calls a command audits its targets one by one."""


def command(meter: Meter, *, url: str, buckets: int, together: bool) -> dict[str, Any]:
    """`auditor audit` as a process of its own, with its run folders in a directory. together: several at once."""
    with tempfile.TemporaryDirectory() as out:
        asked = [sys.executable, "-m", "auditor", "audit", *(f"s3://small-{number:02}" for number in range(buckets))]
        asked += ["--endpoint-url", url, "--out", out, "--format", "json", "--fail-on", "never"]
        asked += [] if together else ["--max-calls", _UNREACHED]
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ended = subprocess.run(asked, capture_output=True, text=True, check=True)
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    meter.laps.append(Lap(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    summaries = [json.loads(line) for line in ended.stdout.splitlines()]
    audited = sum(one["coverage"]["audited"] for one in summaries)
    return {
        "audited": audited,
        "buckets": len({one["target"]["bucket"] for one in summaries}),
        "peak": after.ru_maxrss / 1024,
    }
