"""A request to stop a run, from a signal, a deadline or a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Stop:
    """A request to stop listing; what is in flight is finished. reason: for the user. parent: stops this one too."""

    def __init__(self, parent: Stop | None = None) -> None:
        self._event = asyncio.Event()
        self._children: list[Stop] = []
        self.reason: str | None = None
        if parent is not None:
            parent._children.append(self)
            if parent.reason is not None:
                self.set(parent.reason)

    def __bool__(self) -> bool:
        return self._event.is_set()

    def set(self, reason: str) -> None:
        if not self:
            self.reason = reason
            self._event.set()
            for child in self._children:
                child.set(reason)

    async def race(self, other: Awaitable[T]) -> T | None:
        """The other's result, or None when the stop comes first; the other is then cancelled."""
        task = asyncio.ensure_future(other)
        stop = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
