"""Process the items of a listing concurrently, and deliver the results in the order of the listing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from auditor.aio.budget import InFlightBudget
from auditor.aio.loop import wake
from auditor.aio.stop import Stop
from auditor.aio.tasks import task_group


class Keyed(Protocol):
    """An item of a listing with its object key. Successive items may have the same key: versions of one object."""

    @property
    def key(self) -> str: ...


T = TypeVar("T")
Item = TypeVar("Item", bound=Keyed)
R = TypeVar("R")


class ItemWork(Struct, Generic[R], frozen=True):
    """Work on one item, which in_order() starts once `size` bytes are free in `budget`.

    make: returns the work's coroutine.
    """

    budget: InFlightBudget
    size: int
    make: Callable[[], Coroutine[Any, Any, R]]


Start: TypeAlias = Callable[[asyncio.TaskGroup, Item, bool], Awaitable[R | asyncio.Task[R] | ItemWork[R] | None]]
"""The function that in_order() calls for each item. It begins the work on the item.

It gets the task group, the item, and a flag. The flag is True if the item before has the same object key: then the work
must begin even after a stop. It returns an ItemWork, which in_order() starts; a task that already does the work; a
result, if no task is needed; or None to stop before this item."""

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
    """Call `start` on every item of the pages, and pass the results to `sink` in the order of the listing.

    Return True if the listing ended. Return False if the work ended early, because `stop` was set or `start` returned
    None.

    window: largest number of items that are started, but not yet delivered. batch: largest number of results in one
    call of `sink`; the call has fewer if no more are ready. whole_keys: True to never stop between two versions of one
    key. The versions may continue on the next page, so that page is read even after a stop.

    The first error cancels all other work and is raised. `pages` is always closed.
    """
    pipeline = _Pipeline(start, sink, stop, window, batch)
    async with aclosing(pages), task_group() as group:
        group.create_task(pipeline.drain())
        ended = await pipeline.start_all(group, pages, whole_keys)
        await pipeline.end()
    return ended


@asynccontextmanager
async def one_ahead(pages: AsyncGenerator[T, None]) -> AsyncIterator[AsyncGenerator[T, None]]:
    """Yield a generator of the same pages, which reads one page ahead while the caller processes the present page."""
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


async def next_page(pages: AsyncGenerator[list[T], None], stop: Stop, whole_keys: bool) -> list[T] | None:
    """Return the next page; None after the last page, or after a stop.

    whole_keys: True to return the next page even after a stop.
    """
    if whole_keys:
        return await anext(pages, None)
    return None if stop else await stop.race(_next(pages))


class _Row(Generic[T]):
    """A queue of at most `size` items, for one task that puts them in and another one that takes them out. It takes a
    fifth of the calls of an asyncio.Queue, which serves any number of tasks.
    """

    def __init__(self, size: int) -> None:
        self.items: deque[T] = deque()
        self._size = size
        self._waiting: asyncio.Future[None] | None = None  # of one task at most: the row is not both empty and full

    async def put(self, item: T) -> None:
        while len(self.items) >= self._size:
            await self._change()
        self.items.append(item)
        if self._waiting is not None:
            self._tell(self._waiting)

    async def take(self) -> T:
        while not self.items:
            await self._change()
        if self._waiting is not None:
            self._tell(self._waiting)
        return self.items.popleft()

    async def _change(self) -> None:
        """Wait until the other task puts an item in or takes one out."""
        self._waiting = asyncio.get_running_loop().create_future()
        await self._waiting

    def _tell(self, waiting: asyncio.Future[None]) -> None:
        self._waiting = None
        wake(waiting)


class _Pipeline(Generic[Item, R]):
    """A row of at most `window` started items, whose results go to the sink in order."""

    def __init__(self, start: Start[Item, R], sink: Sink[R], stop: Stop, window: int, batch: int) -> None:
        self._start = start
        self._sink = sink
        self._stop = stop
        self._batch = batch
        self._started: _Row[asyncio.Task[R] | R | None] = _Row(window)

    async def start_all(
        self, group: asyncio.TaskGroup, pages: AsyncGenerator[list[Item], None], whole_keys: bool
    ) -> bool:
        last: str | None = None
        while (page := await next_page(pages, self._stop, whole_keys)) is not None:
            for item in page:
                if self._stop.is_set() and item.key != last:
                    return False
                started = await self._start(group, item, item.key == last)
                if started is None:
                    return False
                if not isinstance(started, asyncio.Task) and isinstance(started, ItemWork):
                    started = await started.budget.start(group, started.size, started.make)
                await self._started.put(started)
                last = item.key
        return not self._stop

    async def end(self) -> None:
        await self._started.put(None)

    async def drain(self) -> None:
        results: list[R] = []
        while (started := await self._started.take()) is not None:
            if isinstance(started, asyncio.Task):
                if results and not started.done():
                    await self._sink(results)
                    results = []
                results.append(await started)
            else:
                results.append(started)
            if len(results) >= self._batch or not self._started.items:
                await self._sink(results)
                results = []
        if results:
            await self._sink(results)


async def _next(pages: AsyncGenerator[list[T], None]) -> list[T] | None:
    return await anext(pages, None)
