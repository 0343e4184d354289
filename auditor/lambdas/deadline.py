"""Stop shortly before the deadline of a Lambda function, and wait for no server longer than that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Final, TypeVar

from auditor.aio.stop import Grace, Stop
from auditor.errors import RunStopped

T = TypeVar("T")

DEADLINE: Final = "the deadline is near"
MARGIN_SECONDS: Final = 45.0
"""Largest time in seconds from the stop to the deadline, the margin. It is MARGIN_SHARE of the time left, if that is
less."""
MARGIN_SHARE: Final = 0.25
LEAST_MARGIN: Final = 12.0
"""Smallest margin in seconds, so that a call that answers late is not cut off; at most half of the time left."""


class FunctionStop(Stop):
    """A stop that is set `margin` seconds before the deadline of a Lambda function.

    Each step after the stop has a share of these seconds, so that a silent server takes no time from the later steps.
    """

    def __init__(self, margin: float) -> None:
        shares = Grace(flight=0.4 * margin, sending=0.5 * margin, saving=0.65 * margin, all=0.7 * margin)
        super().__init__(grace=shares)
        self._margin = margin

    def handing_on(self) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self.limit(0.87 * self._margin)

    def telling(self) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self.limit(0.95 * self._margin)


@contextmanager
def stop_before_deadline(seconds_left: float | None) -> Iterator[FunctionStop]:
    """Yield a stop that is set shortly before the deadline. If seconds_left is None, nothing sets the stop."""
    left = max(0.0, seconds_left or 0.0)
    margin = max(min(MARGIN_SECONDS, left * MARGIN_SHARE), min(LEAST_MARGIN, left / 2))
    stop = FunctionStop(margin)
    if seconds_left is None:
        yield stop
        return
    timer = asyncio.get_running_loop().call_later(left - margin, stop.set, DEADLINE)
    try:
        yield stop
    finally:
        timer.cancel()


async def in_time(work: Awaitable[T], limit: AbstractAsyncContextManager[asyncio.Timeout], silent: str) -> T:
    """Return the result of the work. Raises RunStopped with the sentence `silent` if a server does not answer before
    the limit, which a Stop makes.
    """
    async with limit:
        return await work
    raise RunStopped(silent)


@asynccontextmanager
async def opened(opening: AbstractAsyncContextManager[T], stop: FunctionStop, silent: str) -> AsyncIterator[T]:
    """Open something for the `with` block. Raises RunStopped as in_time() does if a server does not answer before the
    stop.
    """
    async with AsyncExitStack() as stack:
        yield await in_time(stack.enter_async_context(opening), stop.flight(), silent)
