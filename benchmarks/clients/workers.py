"""Make a given number of calls at once, in the same way for every client with such a setting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


async def work_through(items: Iterable[T], call: Callable[[T], Awaitable[object]], concurrency: int) -> None:
    """Call `call` with each item, `concurrency` at a time; the first error ends all."""
    shared = iter(items)
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(_worker(shared, call))


async def _worker(items: Iterator[T], call: Callable[[T], Awaitable[object]]) -> None:
    for item in items:
        await call(item)
