"""The judge and the oracle agree on random cases: the same verdict, and the same audience."""

from __future__ import annotations

import pytest

from tests.verdict.oracle.compare import explained
from tests.verdict.oracle.generator import generate


@pytest.mark.parametrize("part", range(8))
def test_a_thousand_cases(part: int) -> None:
    for seed in range(part * 125, part * 125 + 125):
        if found := explained(generate(seed)):
            pytest.fail(f"case {seed}: {found}", pytrace=False)
