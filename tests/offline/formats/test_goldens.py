"""Each format makes the expected text of the one input."""

from __future__ import annotations

import pytest

from auditor.offline.formats import FORMATS
from tests.offline.formats.golden_files import PLACE, golden, made


@pytest.mark.parametrize("name", FORMATS)
def test_the_text_is_the_expected_one(name: str) -> None:
    expected, found = golden(name).read_bytes().split(b"\n"), made(name).split(b"\n")
    differing = [pair for pair in zip(expected, found, strict=False) if pair[0] != pair[1]][:3]
    assert (differing, len(found)) == ([], len(expected)), "see `make goldens` and git diff"


def test_each_format_has_a_golden_and_nothing_else_is_there() -> None:
    assert {path.name for path in PLACE.iterdir()} == {"input", *(golden(name).name for name in FORMATS)}
