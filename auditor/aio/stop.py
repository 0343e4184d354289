"""Stop long work between two steps, and cancel steps that do not end in time after the stop."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Grace(Struct, frozen=True, kw_only=True):
    """The seconds that each kind of step may still take after a stop. A step that takes longer is cancelled, because a
    server might never answer.

    flight: steps with requests in flight. sending: sending the last messages. saving: writing the run folder. all: all
    work.
    """

    flight: float
    sending: float
    saving: float
    all: float


_ENDLESS: Final = Grace(flight=math.inf, sending=math.inf, saving=math.inf, all=math.inf)


class Stop:
    """A request to start no more work, while work in flight is finished. bool(stop) is True once the stop is set.

    reason: why it was set, in words for the user. parent: another Stop, which sets this one too when it is set. grace:
    the seconds after which unfinished steps are cancelled; None: never.
    """

    def __init__(self, parent: Stop | None = None, grace: Grace | None = None) -> None:
        self._event = asyncio.Event()
        self.is_set = self._event.is_set
        """True if the stop is set. It equals bool(stop), but is faster, for callers that check the stop at each buffer.
        """
        self._children: list[Stop] = []
        self._limits: dict[asyncio.Timeout, float] = {}
        self._set_at = 0.0
        self._grace = grace or _ENDLESS
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
            self._set_at = time.monotonic()
            for limit, seconds in self._limits.items():
                self._start(limit, seconds)
            for child in self._children:
                child.set(reason)

    async def wait(self) -> None:
        """Wait until the stop is set."""
        await self._event.wait()

    def flight(self) -> AbstractAsyncContextManager[asyncio.Timeout]:
        """Run a `with` block that has requests in flight, and cancel it once the grace for such a step is over.

        A cancelled block raises nothing: the code after the block continues. The timeout that the block received then
        says that it has expired. The methods sending(), saving() and all() do the same with the grace for their kind of
        step.
        """
        return self.limit(self._grace.flight)

    def sending(self) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self.limit(self._grace.sending)

    def saving(self) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self.limit(self._grace.saving)

    def all(self) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self.limit(self._grace.all)

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """Run a `with` block, and cancel it `seconds` after the stop.

        A cancelled block raises nothing: the code after the block continues. The timeout that the block received then
        says that it has expired.
        """
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limits[limit] = seconds
                if self:
                    self._start(limit, seconds)
                try:
                    yield limit
                finally:
                    self._limits.pop(limit, None)
        except TimeoutError:
            if not limit.expired():
                raise

    def _start(self, limit: asyncio.Timeout, seconds: float) -> None:
        if seconds < math.inf:
            left = self._set_at + seconds - time.monotonic()
            limit.reschedule(asyncio.get_running_loop().time() + max(0.0, left))

    async def race(self, other: Awaitable[T]) -> T | None:
        """Wait for `other`, and return its result. If the stop is set first, cancel `other` and return None."""
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
"""Seconds between two checks of the stop."""


class CutOff:
    """Runs `with` blocks that are cancelled soon after a stop.

    One task, begun by cut_off_when(), watches the stop for all blocks.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def block(self) -> AsyncIterator[asyncio.Timeout]:
        """Run a `with` block, and cancel it after the stop.

        A cancelled block raises nothing: the code after the block continues. The timeout that the block received then
        says that it has expired.
        """
        timeout = asyncio.timeout(None)
        try:
            async with timeout:
                self._running.add(timeout)
                try:
                    yield timeout
                finally:
                    self._running.discard(timeout)
        except TimeoutError:
            if not timeout.expired():
                raise

    async def watch(self, stop: Stop) -> None:
        """Wait for the stop, then cancel the running blocks. Blocks that begin later are cancelled too. The method ends
        when its own task is cancelled.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(POLL)
            if stop:
                while self._running:
                    self._running.pop().reschedule(loop.time())


@asynccontextmanager
async def cut_off_when(stop: Stop | None) -> AsyncIterator[CutOff]:
    """Yield a CutOff, whose blocks are cancelled once `stop` is set. stop: None to cancel no block."""
    cutoff = CutOff()
    watch = None if stop is None else asyncio.create_task(cutoff.watch(stop))
    try:
        yield cutoff
    finally:
        if watch is not None:
            watch.cancel()
            await asyncio.wait([watch])


@asynccontextmanager
async def stopped_by(event: asyncio.Event | None) -> AsyncIterator[Stop]:
    """Yield a Stop that is set when the event is set. event: None for a Stop that nothing sets."""
    stop = Stop()
    following = None if event is None else asyncio.create_task(_follow(event, stop))
    try:
        yield stop
    finally:
        if following is not None:
            following.cancel()


async def _follow(event: asyncio.Event, stop: Stop) -> None:
    await event.wait()
    stop.set("stopped by the program")
