"""Large policies: judge and oracle agree on those of 1 to 4 kB, and those of 8 to 20 kB obey the laws of verdicts."""

from __future__ import annotations

import json

import pytest

from tests.verdict.oracle.compare import difference, is_too_complex
from tests.verdict.oracle.large import LARGE, MIDDLE, generate_large
from tests.verdict.oracle.laws import trial


def agree_on(seeds: range) -> None:
    complex_ = 0
    for seed in seeds:
        recipe = generate_large(seed)
        if found := difference(recipe):
            pytest.fail(f"case {seed}: {found}", pytrace=False)
        complex_ += is_too_complex(recipe)
    assert complex_ * 100 <= len(seeds), "at most 1 % are too complex"


def obey(seeds: range) -> None:
    trials = {seed: trial(seed) for seed in seeds}
    assert {seed: one.broken for seed, one in trials.items() if one.broken} == {}
    assert sum(one.complex for one in trials.values()) * 20 <= len(seeds), "at most 5 % are too complex"


@pytest.mark.parametrize("part", range(2))
def test_a_sample_agrees(part: int) -> None:
    agree_on(range(part * 10, part * 10 + 10))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_five_hundred_agree(part: int) -> None:
    first = 1_000_000 + part * 125
    agree_on(range(first, first + 125))


def test_a_sample_obeys_the_laws() -> None:
    obey(range(30, 35))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_two_hundred_obey_the_laws(part: int) -> None:
    first = 1_000_000 + part * 50
    obey(range(first, first + 50))


@pytest.mark.parametrize(("sizes", "slack"), [(MIDDLE, 2_000), (LARGE, 3_000)])
def test_sizes_of_policies(sizes: tuple[int, int], slack: int) -> None:
    found = [len(json.dumps(generate_large(seed, sizes).statements)) for seed in range(50)]
    assert sizes[0] <= min(found)
    assert max(found) <= sizes[1] + slack
