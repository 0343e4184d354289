"""Hash filled buffers in order, on a thread, while the event loop fills others."""

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
"""Bytes of an object up to which the event loop hashes it, because handing it to a thread would cost more."""


class InlineExecutor(Executor):
    """An executor without threads: submit() runs the call at once."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class DigestThread:
    """A thread that gives buffers to a digester, one after the other.

    executor: lends one thread until abandon(); to wake a thread for each buffer would cost more CPU. None or
    InlineExecutor: put() hashes on the event loop.
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
        """Hash the view after all earlier ones. Raise the error of an earlier view.

        hashed: called in the thread when the view's memory may be used again.
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
        """Wait until every buffer is hashed. Raise the first error of the hashing."""
        if self._begun:
            empty: asyncio.Future[None] = self._loop.create_future()
            self._queue.put((None, partial(self._loop.call_soon_threadsafe, wake, empty)))
            await empty
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Drop the waiting buffers, and free the thread after the buffer that it is hashing."""
        self._abandoned = True
        self._queue.put(None)

    def _work(self) -> None:
        """Hash buffers in the thread until abandon()."""
        while (item := self._queue.get()) is not None and not self._abandoned:
            view, done = item
            if view is not None and self._error is None:
                try:
                    self._digester.update(view)
                except Exception as error:  # put() and empty() raise it on the event loop
                    self._error = error
            done()
