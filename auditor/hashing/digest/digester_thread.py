"""Digest filled buffers in order, on a thread, while others are filled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import Final, ParamSpec, TypeVar

from auditor.aio.loop import wake
from auditor.hashing.digest.digester import Digester

P = ParamSpec("P")
T = TypeVar("T")
INLINE: Final = 256 * 1024
"""Bytes of an object that is hashed on the loop: a thread's hand-over would cost more than these take."""


class InlineExecutor(Executor):
    """No thread: it calls at once, where it is asked."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class DigestThread:
    """Gives buffers to a digester one after the other, never two at once.

    executor: where one thread is kept until `abandon`, as waking a thread for each buffer costs more CPU than handing
    over; None, or InlineExecutor, and buffers are hashed at once, on the loop.
    """

    def __init__(self, digester: Digester, executor: Executor | None) -> None:
        self._digester = digester
        self._executor = None if isinstance(executor, InlineExecutor) else executor
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
            self._queue.put((None, partial(self._loop.call_soon_threadsafe, wake, empty)))
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
