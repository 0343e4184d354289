"""Work through the items of a listing, many at once, and hand the results on in the listing's order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Generic, Protocol, TypeAlias, TypeVar

from auditor.aio.groups import task_group
from auditor.aio.stop import Stop


class Keyed(Protocol):
    """An item of a listing. Several may follow each other under one key, such as the versions of an object."""

    @property
    def key(self) -> str: ...


T = TypeVar("T")
Item = TypeVar("Item", bound=Keyed)
R = TypeVar("R")

Start: TypeAlias = Callable[[asyncio.TaskGroup, Item, bool], Awaitable[R | asyncio.Task[R] | None]]
"""Starts the work on an item: waits for its permit and gives its task, or its result where that is known already.

None: stop before this item. The last argument is true where an item of the same key was started: this one must follow.
"""

Sink: TypeAlias = Callable[[list[R]], Awaitable[None]]


async def in_order(
    pages: AsyncGenerator[list[Item], None],
    start: Start[Item, R],
    sink: Sink[R],
    stop: Stop,
    *,
    window: int,
    batch: int = 1,
    whole_keys: bool = False,
) -> bool:
    """Start every item, and hand the results to the sink in the listing's order. True when the listing ended.

    window: at most so many items are started whose result the sink does not have. batch: at most so many results go to
    the sink together; it gets those that are there, and waits for none. whole_keys: a key's items may be spread over
    two pages, so the next page is waited for even after a stop.

    The first error cancels the rest and is raised as it is; `pages` is closed in any case.
    """
    pipeline = _Pipeline(start, sink, stop, window, batch)
    async with aclosing(pages), task_group() as group:
        group.create_task(pipeline.drain())
        ended = await pipeline.start_all(group, pages, whole_keys)
        await pipeline.end()
    return ended


@asynccontextmanager
async def one_ahead(pages: AsyncGenerator[T, None]) -> AsyncIterator[AsyncGenerator[T, None]]:
    """The same pages, read by a task of their own: one waits while the one before is worked on."""
    ready: asyncio.Queue[T | None] = asyncio.Queue(1)

    async def read() -> None:
        async for page in pages:
            await ready.put(page)
        await ready.put(None)

    async def arrived() -> AsyncGenerator[T, None]:
        while (page := await ready.get()) is not None:
            yield page

    async with aclosing(pages), task_group() as group:
        reader = group.create_task(read())
        yield arrived()
        reader.cancel()


async def next_page(pages: AsyncGenerator[list[T], None], stop: Stop, whole_keys: bool = False) -> list[T] | None:
    """The next page; None: there is none, or the stop came first. whole_keys: wait for the page even after a stop."""
    if whole_keys:
        return await anext(pages, None)
    return None if stop else await stop.race(_following(pages))


class _Pipeline(Generic[Item, R]):
    """Started items on their way to the sink, in a queue of `window` places."""

    def __init__(self, start: Start[Item, R], sink: Sink[R], stop: Stop, window: int, batch: int) -> None:
        self._start = start
        self._sink = sink
        self._stop = stop
        self._batch = batch
        self._started: asyncio.Queue[asyncio.Task[R] | R | None] = asyncio.Queue(window)

    async def start_all(
        self, group: asyncio.TaskGroup, pages: AsyncGenerator[list[Item], None], whole_keys: bool
    ) -> bool:
        last: str | None = None
        while (page := await next_page(pages, self._stop, whole_keys)) is not None:
            for item in page:
                started = await self._start(group, item, item.key == last)
                if started is None:
                    return False
                await self._started.put(started)
                last = item.key
        return not self._stop

    async def end(self) -> None:
        await self._started.put(None)

    async def drain(self) -> None:
        results: list[R] = []
        while (started := await self._started.get()) is not None:
            if isinstance(started, asyncio.Task):
                if results and not started.done():
                    await self._sink(results)
                    results = []
                results.append(await started)
            else:
                results.append(started)
            if len(results) >= self._batch or self._started.empty():
                await self._sink(results)
                results = []
        if results:
            await self._sink(results)


async def _following(pages: AsyncGenerator[list[T], None]) -> list[T] | None:
    return await anext(pages, None)
