"""An audit writes the expected bytes into each file of its run folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.golden_runs import PLACE, RUNS, golden, made
from tests.support.golden_texts import difference


@pytest.mark.parametrize("name", RUNS)
async def test_files_are_the_expected_ones(name: str, tmp_path: Path) -> None:
    found = await made(name, tmp_path)
    assert difference(golden(name).read_bytes(), found) is None, f"{golden(name)}: see `make goldens` and git diff"


def test_nothing_else_is_there() -> None:
    assert {path.name for path in PLACE.iterdir()} == {golden(name).name for name in RUNS}
