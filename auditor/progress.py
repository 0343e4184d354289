"""Report the progress of long work each second: the objects done, the rate and the estimated time to go."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from auditor.text import counted

TICK_SECONDS: Final = 1.0


class RunCounts(Struct, frozen=True):
    """The present counts of a run, or of a range of one. throttled: number of calls that the server refused for their
    rate.
    """

    listed: int = 0
    findings: int = 0
    undecided: int = 0
    throttled: int = 0

    def __add__(self, other: RunCounts) -> RunCounts:
        return RunCounts(*map(operator.add, astuple(self), astuple(other)))

    @property
    def words(self) -> str:
        """The counts besides the objects, for a progress line."""
        return f"{counted(self.findings, 'finding')}, {self.undecided:,} undecided, {self.throttled:,} throttled"


class Snapshot(Struct, frozen=True, kw_only=True):
    """The progress of long work, such as an audit, at one moment."""

    what: str
    """The name of the work, such as the URI of its target; safe to print."""
    objects: int
    """Number of objects done."""
    seconds: float
    """Seconds since the start."""
    detail: str = ""
    """More counts, in words."""
    expected: int | None = None
    """Number of objects in the last run; None if it is unknown."""
    heard: bool = False
    """True if a server has answered a call of this work, even if no object is done yet."""
    done: bool = False
    """True if the work has ended."""

    @property
    def rate(self) -> float:
        """Objects per second since the start."""
        return self.objects / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta(self) -> float | None:
        """Estimated seconds to go, by the number of objects in the last run; None if unknown or already reached."""
        if not self.expected or not self.rate or self.objects >= self.expected:
            return None
        return (self.expected - self.objects) / self.rate

    @property
    def words(self) -> str:
        """The counts as text for one line. It contains no object key."""
        parts = [counted(self.objects, "object"), f"{self.rate:,.0f}/s"]
        if self.eta is not None:
            parts.append(f"about {clock(self.eta)} to go")
        return ", ".join([*parts, self.detail] if self.detail else parts)


def clock(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds: 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@asynccontextmanager
async def reporting(
    count: Callable[[], Snapshot], take: Callable[[Snapshot], object], *, ends: bool = True
) -> AsyncIterator[None]:
    """Call `take` each second with a snapshot of the work in the `with` block.

    count: makes the snapshot. ends: True to call `take` once more, with done=True, after a block that ends without an
    error.
    """
    ticker = asyncio.create_task(_tick(count, take))
    try:
        yield
    finally:
        ticker.cancel()
        await asyncio.wait([ticker])
    if not ticker.cancelled() and (error := ticker.exception()) is not None:
        raise error
    if ends:
        take(replace(count(), done=True))


async def _tick(count: Callable[[], Snapshot], take: Callable[[Snapshot], object]) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        take(count())
