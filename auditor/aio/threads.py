"""Run blocking functions at the same time, in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


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
