"""The calls that a stop cuts off, and those that it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from auditor.aio import stop as cutoff
from auditor.aio.stop import CutOff, Stop, cut_off_when


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutoff, "POLL", 0.001)


async def answer(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "answer"


async def cut(cutoff: CutOff, work: Awaitable[str]) -> str | None:
    """The result of the work; None when it was cut off."""
    result = None
    async with cutoff.block() as timeout:
        result = await work
    assert timeout.expired() is (result is None)
    return result


async def test_under_way_and_begun_later_are_cut_off() -> None:
    stop = Stop()
    async with cut_off_when(stop) as it:
        first = asyncio.create_task(cut(it, answer(3600)))
        assert await cut(it, answer(0.01)) == "answer"
        assert not first.done()
        stop.set("the deadline is near")
        assert await asyncio.wait_for(first, 30) is None
        assert await asyncio.wait_for(cut(it, answer(3600)), 30) is None


async def test_time_that_runs_out_within_the_call_is_its_own_error() -> None:
    async def impatient() -> str:
        async with asyncio.timeout(0.001):
            return await answer(3600)

    async with cut_off_when(Stop()) as it:
        with pytest.raises(TimeoutError):
            await cut(it, impatient())
