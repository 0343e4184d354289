"""Run blocking functions at the same time, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context


def side_by_side(works: Sequence[Callable[[], object]]) -> None:
    """Call all functions at once, the first one in this thread, and wait for all. Raise the first error, if any."""
    if not works:
        return
    with ThreadPoolExecutor(max(1, len(works) - 1)) as threads:
        others = [threads.submit(copy_context().run, work) for work in works[1:]]
        works[0]()
    for other in others:
        other.result()
