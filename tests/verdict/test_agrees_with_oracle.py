"""The judge and the oracle agree on random cases: the same verdict, and the same audience. The largest obey laws."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.verdict.oracle.compare import compared, explained
from tests.verdict.oracle.generator import KEYS_OF_2026_FROM, generate
from tests.verdict.oracle.large import generate_large
from tests.verdict.oracle.laws import trial
from tests.verdict.oracle.recipe import Recipe


def agree_on(seeds: range, make: Callable[[int], Recipe] = generate, most: int = 0) -> None:
    """most: largest share of policies that are too complex, in percent."""
    complex_ = 0
    for seed in seeds:
        found, too_complex = compared(make(seed))
        complex_ += too_complex
        if found is not None:
            pytest.fail(f"case {seed}: {explained(make(seed))}", pytrace=False)
    assert complex_ * 100 <= len(seeds) * most, "too complex"


def obey(seeds: range) -> None:
    trials = {seed: trial(seed) for seed in seeds}
    assert {seed: one.broken for seed, one in trials.items() if one.broken} == {}
    assert sum(one.complex for one in trials.values()) * 20 <= len(seeds), "at most 5 % are too complex"


@pytest.mark.parametrize("part", range(4))
def test_five_hundred_cases(part: int) -> None:
    agree_on(range(part * 125, part * 125 + 125))


@pytest.mark.parametrize("part", range(2))
def test_two_hundred_cases_with_the_keys_of_2026(part: int) -> None:
    first = KEYS_OF_2026_FROM + part * 100
    agree_on(range(first, first + 100))


def test_a_sample_of_large_policies() -> None:
    """Of 1 to 4 kB, and of 8 to 20 kB, which obey the laws of verdicts."""
    agree_on(range(6), generate_large, 1)
    obey(range(30, 32))


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


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_five_hundred_large_policies(part: int) -> None:
    first = 1_000_000 + part * 125
    agree_on(range(first, first + 125), generate_large, 1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_two_hundred_of_the_largest_obey_the_laws(part: int) -> None:
    first = 1_000_000 + part * 50
    obey(range(first, first + 50))
