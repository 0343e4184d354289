"""Choose the number of streams that read one object, and the size of the range that each GET reads.

A stream is a connection that reads one range after the other. The object's size and the measured rate decide.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from auditor.hashing.limits import BUFFER, LARGE, MIB, STREAMS

LEAST: Final = 8 * MIB
"""Object size in bytes below which one stream reads the object, whatever the setting says."""
MOST_USED: Final = 32
"""Largest number of streams for one object, whatever the setting says. At 25 MB/s each, this number of streams brings
more bytes than one core can hash."""
MEMORY: Final = 36 * MIB
"""Number of bytes of memory for the blocks of one object. A block is the range that one GET reads."""
WITH_CONNECTIONS: Final = 60 * MIB
"""Number of bytes of memory for the blocks and the connections of one object together."""
PER_CONNECTION: Final = 896 * 1024
"""Number of bytes of memory that TLS and the event loop use for one connection, as measured."""
LARGEST_BLOCK: Final = 9 * MIB
"""Largest size of a block, in bytes. At 25 MB/s, such a block takes 380 ms; the wait for its first byte, 30 ms, then
costs 8 %."""
_STEP: Final = 4 * 1024
WINDOW: Final = 0.4
"""Seconds over which a rate is measured."""
SETTLING: Final = 0.2
"""Seconds after a change of the number of streams during which the rate is not measured."""
FAST: Final = 100e6
"""Rate of one stream, in bytes a second, above which more streams are not tried.

S3 gives about 90 MB/s to a connection (S3 User Guide, performance guidelines); above that, something else is the
limit."""
GAIN: Final = 1.2
"""Factor by which the rate must grow with more streams. If it does not, the change is undone."""
BUSY: Final = 0.8
"""Share of a core. If the process uses this share or more, further streams are not tried: the CPU is the limit, not the
network."""
ONE_CORE: Final = 1769
"""Memory of a Lambda function, in MB, that comes with one core (AWS Lambda Developer Guide, memory)."""
HOLD: Final = 30.0
"""Seconds before more streams are tried again, after a change to more streams was undone. The time doubles with each
such change, up to LONGEST_HOLD."""
LONGEST_HOLD: Final = 600.0


def function_memory(environ: Mapping[str, str] = os.environ) -> int | None:
    """Return the memory, in MB, of the Lambda function that runs this process; None outside Lambda."""
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return int(memory) if memory.isdecimal() and int(memory) else None


def core_share(environ: Mapping[str, str] = os.environ) -> float:
    """Return the share of a CPU core that the event loop can use: 1.0, or less in a Lambda function with little
    memory.
    """
    return min(1.0, (function_memory(environ) or ONE_CORE) / ONE_CORE)


class RangeLayout(Struct, frozen=True):
    """The sizes, in bytes, of the ranges and buffers with which several streams read one object.

    block: range that one GET reads, which fills several buffers. memory: limit for all blocks that are being read or
    wait to be hashed.
    """

    block: int
    buffer: int
    memory: int


def layout(streams: int, left: int) -> RangeLayout:
    """Return the sizes with which `streams` streams (at most MOST_USED) read the last `left` bytes of an object.

    Each GET begins with a wait for S3, so each range is as large as the memory allows, with one range for each stream.
    All streams get the same number of ranges, so that they end at the same time.
    """
    memory = min(MEMORY, WITH_CONNECTIONS - PER_CONNECTION * streams)
    largest = min(LARGEST_BLOCK, memory // streams // _STEP * _STEP, max(MIB, _rounded(-(-left // streams))))
    turns = max(1, -(-left // (largest * streams)))
    share = min(largest, max(MIB, -(-left // (turns * streams))))
    buffers = -(-share // BUFFER)
    buffer = min(largest // buffers // _STEP * _STEP, _rounded(-(-share // buffers)))
    return RangeLayout(buffer * buffers, buffer, largest * streams)


def _rounded(size: int) -> int:
    return -(-size // _STEP) * _STEP


class Tuner:
    """Finds the best number of streams for one object: doubles the number as long as this raises the rate by a fifth.

    streams: the number wanted at present. `now` is a time in seconds, in every method.
    """

    def __init__(self, now: float) -> None:
        self.streams = 1
        self._before: tuple[int, float] | None = None
        self._hold = HOLD
        self._held_until = now
        self._mark: tuple[float, int, float] | None = None
        self._settled_at = now

    def note(self, now: float, count: int, busy: float) -> int:
        """Measure the rate from the bytes hashed so far, and return the wanted number of streams.

        count: number of bytes hashed so far. busy: CPU seconds used so far, divided by core_share().
        """
        if now < self._settled_at:
            return self.streams
        if self._mark is None:
            self._mark = (now, count, busy)
            return self.streams
        seconds = now - self._mark[0]
        if seconds >= WINDOW:
            rate, share = (count - self._mark[1]) / seconds, (busy - self._mark[2]) / seconds
            self._mark = (now, count, busy)
            self._decide(now, rate, share)
        return self.streams

    def refused(self, now: float) -> None:
        """Go back to fewer streams, because there is no memory for more, or because S3 asks for fewer calls."""
        fewer = self._before[0] if self._before is not None else max(1, self.streams // 2)
        self._go_back(now, fewer)

    def _decide(self, now: float, rate: float, share: float) -> None:
        """Undo the last increase of the number if it did not raise the rate enough; otherwise double the number, if
        that may help.

        rate: bytes a second. share: share of a core that the process uses.
        """
        if self._before is not None:
            fewer, rate_before = self._before
            if rate < GAIN * rate_before:
                self._go_back(now, fewer)
                return
            self._before = None
        slow = rate < FAST * self.streams
        if self.streams < STREAMS and slow and share < BUSY and now >= self._held_until:
            self._before = (self.streams, rate)
            self._set(now, min(STREAMS, 2 * self.streams))

    def _go_back(self, now: float, streams: int) -> None:
        self._before = None
        self._held_until = now + self._hold
        self._hold = min(LONGEST_HOLD, 2 * self._hold)
        self._set(now, streams)

    def _set(self, now: float, streams: int) -> None:
        self.streams = streams
        self._mark = None
        self._settled_at = now + SETTLING


class Fixed:
    """A tuner that keeps the number of streams of the settings. refused() halves the number."""

    def __init__(self, streams: int) -> None:
        self.streams = streams

    def note(self, now: float, count: int, busy: float) -> int:
        return self.streams

    def refused(self, now: float) -> None:
        self.streams = max(1, self.streams // 2)


def connections(objects: int, streams: int | None) -> int:
    """Return the number of connections to open: one for each of `objects` objects, and some more for the streams of
    large ones.
    """
    return objects + (streams or STREAMS)


def make_tuner(streams: int | None, left: int, now: float) -> Tuner | Fixed:
    """Return the tuner for one object: a Tuner that measures, or a fixed number of streams.

    streams: the setting; None to find the best number for a large object. left: number of bytes still to be read. now:
    the time in seconds.
    """
    if streams is None and left >= LARGE:
        return Tuner(now)
    if streams is None or left < LEAST:
        return Fixed(1)
    return Fixed(min(streams, MOST_USED))
