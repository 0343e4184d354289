"""Two runs of a million objects each are compared in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Judgement
from auditor.model.run_lines import Standing
from auditor.runs.folder import RunFolder
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.encoded_lines import encode_finding, encode_object
from tests.support.paths import ROOT
from tests.support.samples.reports import ROLLED_UP, finding, judged, sample_file, sample_summary, target

OBJECTS: Final = 1_000_000
MEMORY: Final = 100
"""MiB that the process may take."""
FIRST, SECOND = "20260101T030000Z-0a1b2c", "20260102T030000Z-0a1b2c"
HISTORY: Final = Standing("2026-01-01T03:00:00Z", True)


def judgement(number: int, night: int) -> Judgement:
    """Every hundredth object is exposed; of 100 objects each ten thousandth, half open and half close on night 1."""
    planted = number % 10_000 == 77
    is_open = (planted and (number // 10_000 + night) % 2 == 0) or number % 100 == 5
    key = f"data/{number:09}.bin"
    return judged(key, finding(key), verdict=Verdict.EXPOSED) if is_open else judged(key)


def write(store: LocalStore, run: str, night: int, objects: int) -> str:
    tally = Tally()
    described = sample_file(run=run, target=target()).to_json()
    with RunFolder(
        store, "audited", run, target=target(), tally=tally, fresh=True, describe=lambda first: described
    ) as folder:
        folder.prepare()
        for number in range(objects):
            made = judgement(number, night)
            tally.add(made)
            standing = HISTORY if made.findings else None
            if folder.write(
                made.evidence.ref.key,
                None,
                encode_object(made, None, False, standing),
                [encode_finding(one, made.verdict, HISTORY) for one in made.findings],
            ):
                folder.flush()
        folder.finish(replace(sample_summary(tally), run=run), "", ROLLED_UP)
    return folder.uri


@pytest.mark.slow
def test_million_lines_a_side_take_a_hundred_mebibytes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    places = [write(store, run, night, OBJECTS) for night, run in enumerate((FIRST, SECOND))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.compared_runs", *places], cwd=ROOT, capture_output=True, check=True
    )
    cost = json.loads(done.stdout)
    print(f"{cost['cpu']:.1f} CPU seconds, {cost['peak']:.0f} MiB")
    assert cost["found"] == {
        "verdict new": 50,
        "finding new": 50,
        "verdict resolved": 50,
        "finding resolved": 50,
    }
    assert cost["peak"] < MEMORY
