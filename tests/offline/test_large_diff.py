"""Two large runs are compared in little memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from auditor.model.access import Verdict
from auditor.runs.segment import Segment
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.encoded_lines import encode_object
from tests.support.killed_run import begin, end
from tests.support.paths import ROOT
from tests.support.samples.reports import judged, sample_summary

OBJECTS: Final = 150_000
MEMORY: Final = 110
"""MiB that the process may take."""
CHILD: Final = """
import sys
from pathlib import Path
from auditor.cli.main import main
code = main(sys.argv[1:])
print(Path("/proc/self/status").read_text(), file=sys.stderr)  # getrusage() has the peak of the process before exec
sys.exit(code)
"""


def write(store: LocalStore, night: int) -> str:
    """Write a run, of whose objects every ten thousandth is exposed: half open and half close on the second night."""
    run, tally = begin(store, f"2026010{night}T030000Z-0a1b2c").run, Tally()
    with Segment(store, "audited", run, tally=tally, fresh=True) as segment:
        segment.prepare()
        for number in range(OBJECTS):
            is_open = number % 10_000 == 77 and (number // 10_000 + night) % 2 == 0
            made = judged(f"data/{number:09}.bin", verdict=Verdict.EXPOSED if is_open else Verdict.PRIVATE)
            tally.add(made)
            if segment.write(made.evidence.ref.key, None, encode_object(made, None, False, None), []):
                segment.flush()
        end(store, segment, sample_summary(tally, run=run))
    return segment.uri


@pytest.mark.slow
def test_large_runs_are_compared_in_a_hundred_mebibytes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    command = [sys.executable, "-c", CHILD, "diff", write(store, 1), write(store, 2), "--format", "jsonl"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert (kinds.count("new"), kinds.count("resolved"), len(kinds)) == (8, 7, 15)
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stderr)
    assert int(peak) / 1024 < MEMORY
