"""Do blocking work side by side, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context


def side_by_side(works: Sequence[Callable[[], object]]) -> None:
    """Do all the works at once, one of them in this thread, and wait for their ends. Raise the first one's error."""
    if not works:
        return
    with ThreadPoolExecutor(max(1, len(works) - 1)) as threads:
        others = [threads.submit(copy_context().run, work) for work in works[1:]]
        works[0]()
    for other in others:
        other.result()
