"""The loop of our programs, and what it does to the process that runs it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from auditor.loops import YOUNG, new_loop, run


@pytest.fixture(autouse=True)
def same_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_result_and_error_are_those_of_the_coroutine() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    async def fail() -> None:
        raise ValueError("no")

    assert run(answer()) == 42
    with pytest.raises(ValueError, match="no"):
        run(fail())


@pytest.mark.parametrize(("before", "after"), [(700, YOUNG), (2 * YOUNG, 2 * YOUNG), (0, 0)])
def test_cycles_are_looked_for_less_often_unless_somebody_has_decided_that(before: int, after: int) -> None:
    _, *older = gc.get_threshold()
    gc.set_threshold(before, *older)
    new_loop().close()
    assert gc.get_threshold() == (after, *older)
