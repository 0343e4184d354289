"""Hash filled buffers in order, on a thread, while others are filled."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import Final, ParamSpec, TypeVar

from auditor.digesting import Digester

P = ParamSpec("P")
T = TypeVar("T")

INLINE: Final = 256 * 1024
"""Bytes of an object that is hashed on the loop: a thread's hand-over would cost more than these take."""


class OnTheLoop(Executor):
    """No thread: it calls at once, where it is asked."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class Feed:
    """Gives buffers to a digester one after the other, never two at once.

    executor: where one thread is kept until `abandon`, as waking a thread for each buffer costs more CPU than handing
    over; None, or OnTheLoop, and buffers are hashed at once, on the loop.
    """

    def __init__(self, digester: Digester, executor: Executor | None) -> None:
        self._digester = digester
        self._executor = None if isinstance(executor, OnTheLoop) else executor
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[memoryview | None, Callable[[], object]] | None] = SimpleQueue()
        self._begun = False
        self._abandoned = False
        self._error: Exception | None = None

    def put(self, view: memoryview, hashed: Callable[[], object]) -> None:
        """Hash the view after all others; raises what hashing one of them raised.

        hashed: called when its memory can be used again, in the thread.
        """
        if self._error is not None:
            raise self._error
        if self._executor is None:
            self._digester.update(view)
            hashed()
            return
        self._queue.put((view, hashed))
        if not self._begun:
            self._begun = True
            self._executor.submit(self._work)

    async def empty(self) -> None:
        """Wait until all is hashed; raises what hashing raised."""
        if self._begun:
            empty: asyncio.Future[None] = self._loop.create_future()
            self._queue.put((None, partial(self._loop.call_soon_threadsafe, _wake, empty)))
            await empty
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Forget what waits and let go of the thread; what is being hashed is finished in vain."""
        self._abandoned = True
        self._queue.put(None)

    def _work(self) -> None:
        """In a thread: hash until it is abandoned."""
        while (item := self._queue.get()) is not None and not self._abandoned:
            view, done = item
            if view is not None and self._error is None:
                try:
                    self._digester.update(view)
                except Exception as error:  # it is raised where the loop waits for the digest
                    self._error = error
            done()


class Buffers:
    """A few buffers of one size, made when they are first needed, used again and again. most: how many.

    One taker at a time, on the loop; they are given back in any thread.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._left = most
        self._enough = max(1, most // 2)
        self._free: deque[bytearray] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None

    async def take(self) -> bytearray:
        """Once all are in use it waits for half of them: then the loop is woken half as often."""
        if not self._free and self._left:
            self._left -= 1
            return bytearray(self._size)
        if not self._free:
            self._waiting = waiting = self._loop.create_future()
            if len(self._free) < self._enough:  # none were given back before it was seen that one waits
                await waiting
            self._waiting = None
        return self._free.pop()

    def give(self, buffer: bytearray) -> None:
        self._free.append(buffer)
        waiting = self._waiting
        if waiting is not None and len(self._free) == self._enough:
            self._loop.call_soon_threadsafe(_wake, waiting)


class Room:
    """Memory for several blocks at once: all that a block needs is promised together, to one block after the other.

    It is given back buffer by buffer, in any thread; all else is for the loop.
    """

    def __init__(self) -> None:
        self._buffer = 0
        self._size = 0
        self._promised = 0
        self._free: list[bytearray] = []
        self._returned: deque[tuple[bytearray, int]] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._loop = asyncio.get_running_loop()

    def change(self, size: int, buffer: int) -> None:
        """Have `size` bytes in all from now on, in buffers of so many."""
        if buffer != self._buffer:
            self._free.clear()
        self._size, self._buffer = size, buffer
        self._settle()

    def ask(self, size: int) -> asyncio.Future[None]:
        """Done when the buffers of a block of so many bytes may be taken; one larger than all may when it is alone."""
        granted: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((size, granted))
        self._settle()
        return granted

    def take(self) -> bytearray:
        """A buffer of what was granted."""
        return self._free.pop() if self._free else bytearray(self._buffer)

    def give(self, buffer: bytearray, size: int) -> None:
        """size: how many of the granted bytes it held."""
        self._returned.append((buffer, size))
        if self._waiting:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        while self._returned:
            buffer, size = self._returned.popleft()
            self._promised -= size
            if len(buffer) == self._buffer:
                self._free.append(buffer)
        while self._waiting:
            size, granted = self._waiting[0]
            if self._promised and self._promised + size > self._size:
                break
            self._waiting.popleft()
            self._promised += size
            _wake(granted)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
