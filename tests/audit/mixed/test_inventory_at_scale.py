"""A large report is joined with a large listing in memory that does not grow with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.paths import ROOT

SMALL: Final = 40_000
LARGE: Final = 240_000
RUN_MIB: Final = 48 * 3
"""What one run of the external sort may take, with the garbage of its making: it is bounded, whatever the report."""


def call(*arguments: object) -> str:
    command = [sys.executable, "-m", "tests.support.inventory_at_scale", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_memory_is_bounded(tmp_path: Path) -> None:
    peaks = []
    for count in (SMALL, LARGE):
        folder = tmp_path / str(count)
        call("write", folder, count)
        found: dict[str, Any] = json.loads(call("join", folder, count))
        assert (found["matches"], found["wrong"]) == ({"found": count}, 0)
        peaks.append(found["peak_mib"])
    assert peaks[1] < peaks[0] + RUN_MIB
