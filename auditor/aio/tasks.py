"""Run tasks in groups that raise the first error itself, not an ExceptionGroup; and blocking functions at the same
time, in threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Open an asyncio.TaskGroup that raises the first error of its tasks itself, not an ExceptionGroup."""
    error: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        error = _first(errors)
    if error is not None:
        raise error


async def together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently, and return their results in order. The first error cancels the others."""
    async with task_group() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def side_by_side(works: Sequence[Callable[[], object]]) -> None:
    """Call all functions at once, the first one in this thread, and wait for all. Raise the first error, if any."""
    if not works:
        return
    with ThreadPoolExecutor(max(1, len(works) - 1)) as threads:
        others = [threads.submit(copy_context().run, work) for work in works[1:]]
        works[0]()
    for other in others:
        other.result()


def in_order(works: Iterable[Callable[[], T]], at_once: int) -> Iterator[T]:
    """Yield the results of the functions in their order. Each is called in a thread, so many at a time and no further
    ahead.

    The first error is raised in its place. A caller that stops early waits for the calls that have begun.
    """
    with ThreadPoolExecutor(at_once) as threads:
        begun: deque[Future[T]] = deque()
        for work in works:
            begun.append(threads.submit(copy_context().run, work))
            if len(begun) >= at_once:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
