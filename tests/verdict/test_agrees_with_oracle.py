"""The judge and the oracle agree on random cases: the same verdict, and the same audience."""

from __future__ import annotations

import pytest

from tests.verdict.oracle.compare import explained
from tests.verdict.oracle.generator import generate


def agree_on(seeds: range) -> None:
    for seed in seeds:
        if found := explained(generate(seed)):
            pytest.fail(f"case {seed}: {found}", pytrace=False)


@pytest.mark.parametrize("part", range(8))
def test_a_thousand_cases(part: int) -> None:
    agree_on(range(part * 125, part * 125 + 125))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_cases(part: int) -> None:
    first = 1_000_000 + part * 500
    agree_on(range(first, first + 500))
