"""An audit writes the expected bytes into each file of its run folder."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import pytest

from tests.audit.golden_runs import PLACE, RUNS, golden, made


@pytest.mark.parametrize("name", RUNS)
async def test_files_are_the_expected_ones(name: str, tmp_path: Path) -> None:
    expected, found = golden(name).read_bytes(), await made(name, tmp_path)
    for number, pair in enumerate(zip_longest(expected.split(b"\n"), found.split(b"\n")), 1):
        assert pair[1] == pair[0], f"line {number} of {golden(name)}: see `make goldens` and git diff"


def test_nothing_else_is_there() -> None:
    assert {path.name for path in PLACE.iterdir()} == {golden(name).name for name in RUNS}
