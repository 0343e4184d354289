"""Stop long work between two steps, or cut off one that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import Final, Self, TypeVar

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


POLL: Final = 0.5
"""Seconds between questions whether to stop."""


class CutOff:
    """Within it, calls are cut off once the stop is set; without a stop, never.

    One watch looks after any number of them: none is a task of its own.
    """

    def __init__(self, stop: Stop | None) -> None:
        self._stop = stop
        self._watching: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Timeout] = set()

    async def __aenter__(self) -> Self:
        if self._stop is not None:
            self._watching = asyncio.create_task(self._watch(self._stop))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def of(self, work: Awaitable[T]) -> T | None:
        """What the work gives; None when it was cut off."""
        timeout = asyncio.timeout(None)
        try:
            async with timeout:
                self._under_way.add(timeout)
                try:
                    return await work
                finally:
                    self._under_way.discard(timeout)
        except TimeoutError:
            if not timeout.expired():
                raise
            return None

    async def _watch(self, stop: Stop) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(POLL)
            if stop:
                while self._under_way:
                    self._under_way.pop().reschedule(loop.time())
