"""Limit the number of objects that are hashed at once, and the bytes of them that are in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from auditor.aio.tasks import task_group


class Sized(Protocol):
    """An object with a size in bytes."""

    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=Sized)
T = TypeVar("T")


class InFlightStatistics(Struct, frozen=True):
    """The state of an InFlightBudget at one moment.

    objects: number of objects in flight. bytes: the sum of their sizes. waiting: number of objects that wait.
    """

    objects: int
    bytes: int
    waiting: int


class InFlightBudget:
    """Limits the work in flight to `count` objects and `size` bytes.

    An object of more than `size` bytes may only be in flight alone.
    """

    def __init__(self, count: int, size: int) -> None:
        self._count = max(1, count)
        self._size = size
        self._objects = 0
        self._bytes = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def statistics(self) -> InFlightStatistics:
        return InFlightStatistics(self._objects, self._bytes, len(self._waiting))

    async def take(self, size: int) -> None:
        """Wait until an object of `size` bytes fits into the limit, and count it as in flight."""
        while not self._fits(size):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.add(turn)
            try:
                await turn
            finally:
                self._waiting.discard(turn)
        self._objects += 1
        self._bytes += size

    async def for_each(
        self, objects: Iterable[S], work: Callable[[S], Coroutine[Any, Any, None]], *, most: int
    ) -> None:
        """Run `work` on each object as soon as the object fits into the limit, and wait until all work is done.

        most: the largest number of bytes that one object counts for; a larger object counts as this. The first error
        cancels the other work and is raised.
        """
        async with task_group() as group:
            for one in objects:
                await self.start(group, min(one.size, most), partial(work, one))

    async def start(
        self, group: asyncio.TaskGroup, size: int, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> asyncio.Task[T]:
        """Wait until `size` bytes fit into the limit, then start the work as a task.

        When the task ends, the bytes are free again.
        """
        await self.take(size)
        task = group.create_task(work())
        # Not inside the task: a task that is cancelled before its first step never runs.
        task.add_done_callback(lambda _: self.give(size))
        return task

    def give(self, size: int) -> None:
        self._objects -= 1
        self._bytes -= size
        self.wake()

    def borrow(self, size: int) -> bool:
        """Count `size` more bytes for an object in flight, and return True.

        Return False, and count nothing, if objects wait or too few bytes are left. With a limit of one object, waiting
        objects do not matter: they start after this object anyway.
        """
        if (self._waiting and self._count > 1) or self._bytes + size > self._size:
            return False
        self._bytes += size
        return True

    def repay(self, size: int) -> None:
        """Give back `size` bytes that borrow() counted."""
        self._bytes -= size
        self.wake()

    def wake(self) -> None:
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)

    def _fits(self, size: int) -> bool:
        return self._objects == 0 or (self._objects < self._count and self._bytes + size <= self._size)
