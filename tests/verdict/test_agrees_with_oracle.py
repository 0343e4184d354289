"""The judge and the oracle agree on random cases: the same verdict, and the same audience."""

from __future__ import annotations

import pytest

from tests.verdict.oracle.compare import explained
from tests.verdict.oracle.generator import KEYS_OF_2026_FROM, generate


def agree_on(seeds: range) -> None:
    for seed in seeds:
        if found := explained(generate(seed)):
            pytest.fail(f"case {seed}: {found}", pytrace=False)


@pytest.mark.parametrize("part", range(8))
def test_a_thousand_cases(part: int) -> None:
    agree_on(range(part * 125, part * 125 + 125))


@pytest.mark.parametrize("part", range(4))
def test_three_hundred_cases_with_the_keys_of_2026(part: int) -> None:
    first = KEYS_OF_2026_FROM + part * 75
    agree_on(range(first, first + 75))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_two_thousand_cases_with_the_keys_of_2026(part: int) -> None:
    first = KEYS_OF_2026_FROM + 300 + part * 200
    agree_on(range(first, first + 200))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_cases(part: int) -> None:
    first = 1_000_000 + part * 500
    agree_on(range(first, first + 500))
