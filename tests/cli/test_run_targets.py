"""Several targets of one command: side by side, under one ceiling, with one exit code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from auditor.cli.progress import Show
from auditor.cli.run_targets import combined, each_target
from auditor.model.target import Target
from auditor.progress import Snapshot

TARGETS = [Target(f"bucket-{number:02}") for number in range(60)]


@asynccontextmanager
async def opening() -> AsyncIterator[None]:
    yield


async def test_targets_are_worked_on_side_by_side_and_never_more_than_that() -> None:
    """Each of the first eight waits for the others, so that one after the other would never end."""
    running, most = 0, 0
    eight = asyncio.Event()

    async def one(target: Target, shared: None, stop: object, show: Show) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 8:
            eight.set()
        async with show(lambda: Snapshot(what=target.uri, objects=1, seconds=1.0)):
            await eight.wait()
            await asyncio.sleep(0)
        running -= 1
        return 0

    assert await each_target(TARGETS, opening(), one, verb="audited", kept="nothing", at_once=8) == 0
    assert most == 8


def test_one_exit_code() -> None:
    for codes, code in (([0, 3], 3), ([3, 4], 4), ([0, 1], 4), ([1, 3], 4), ([1, 1], 1), ([1], 1), ([1, 4], 4)):
        assert combined(codes) == code, codes
