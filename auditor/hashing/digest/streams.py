"""Choose how many streams read one object, and how large the range of each GET is.

A stream is a connection that reads one range after the other. The object's size and the measured rate decide.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from auditor.hashing.limits import BUFFER, LARGE, MIB

MOST: Final = 8
"""Largest number of streams of one object, if no setting asks for more."""
LEAST: Final = 8 * MIB
"""Size of an object, in bytes, below which one stream reads it, whatever the setting says."""
MOST_USED: Final = 32
"""Largest number of streams of one object, whatever the setting says. At 25 MB/s each they bring more than one core can
hash."""
MEMORY: Final = 36 * MIB
"""Bytes of memory for the blocks of one object. A block is the range of one GET."""
WITH_CONNECTIONS: Final = 60 * MIB
"""Bytes of memory for the blocks and the connections together."""
PER_CONNECTION: Final = 896 * 1024
"""Bytes of memory that TLS and the event loop use for one connection (measured)."""
LARGEST_BLOCK: Final = 9 * MIB
"""Largest size of a block, in bytes. At 25 MB/s it takes 380 ms; a wait of 30 ms for its first byte then costs 8 %."""
_STEP: Final = 4 * 1024
WINDOW: Final = 0.4
"""Seconds over which a rate is measured."""
SETTLING: Final = 0.2
"""Seconds after a change of the number of streams, in which the rate is not measured."""
FAST: Final = 100e6
"""Rate of one stream, in bytes a second, from which more streams are not tried. S3 gives about 90 MB/s to a connection
(S3 User Guide, performance guidelines); above that, something else is the limit."""
GAIN: Final = 1.2
"""Factor by which more streams must raise the rate. If they do not, the number of streams goes back."""
BUSY: Final = 0.8
"""Share of a core that the process uses; from this share on, the CPU is the limit, not the network."""
ONE_CORE: Final = 1769
"""MB of a function's memory that buy one core (AWS Lambda Developer Guide, memory)."""
HOLD: Final = 30.0
"""Seconds after more streams failed, until more are tried again; doubled after each failure, up to LONGEST_HOLD."""
LONGEST_HOLD: Final = 600.0


def function_memory(environ: Mapping[str, str] = os.environ) -> int | None:
    """Return the memory, in MB, of the Lambda function that runs this process; None outside Lambda."""
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return int(memory) if memory.isdecimal() and int(memory) else None


def core_share(environ: Mapping[str, str] = os.environ) -> float:
    """Return the share of a CPU core that the event loop has: 1.0, or less in a small Lambda function."""
    return min(1.0, (function_memory(environ) or ONE_CORE) / ONE_CORE)


@dataclass(frozen=True, slots=True)
class RangeLayout:
    """The sizes, in bytes, with which several streams read one object.

    block: the range of one GET, which fills several buffers. memory: all blocks that are being read or wait to be
    hashed.
    """

    block: int
    buffer: int
    memory: int


def layout(streams: int, left: int) -> RangeLayout:
    """Return the sizes for `streams` streams (at most MOST_USED) that read the last `left` bytes of an object.

    Each GET begins with a wait for S3, so its range is as large as the memory allows with one range for each stream.
    All streams have equally many ranges, so that they end at the same time.
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
    """Finds the number of streams for one object: doubles it as long as the rate grows by a fifth.

    streams: the number wanted now. now: the time in seconds, in every method.
    """

    def __init__(self, now: float) -> None:
        self.streams = 1
        self._before: tuple[int, float] | None = None
        self._hold = HOLD
        self._held_until = now
        self._mark: tuple[float, int, float] | None = None
        self._settled_at = now

    def note(self, now: float, count: int, busy: float) -> int:
        """Measure the rate, and return the wanted number of streams.

        count: bytes hashed so far. busy: CPU seconds so far, divided by core_share().
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
        """Go back to fewer streams, because memory is lacking for more, or because S3 asks for fewer calls."""
        fewer = self._before[0] if self._before is not None else max(1, self.streams // 2)
        self._go_back(now, fewer)

    def _decide(self, now: float, rate: float, share: float) -> None:
        """Keep or undo the last change of the number, by its effect on the rate, or double the number.

        share: the share of a core that the process uses.
        """
        if self._before is not None:
            fewer, rate_before = self._before
            if rate < GAIN * rate_before:
                self._go_back(now, fewer)
                return
            self._before = None
        slow = rate < FAST * self.streams
        if self.streams < MOST and slow and share < BUSY and now >= self._held_until:
            self._before = (self.streams, rate)
            self._set(now, min(MOST, 2 * self.streams))

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
    """A Tuner that keeps to the setting's number of streams, or to fewer after refused()."""

    def __init__(self, streams: int) -> None:
        self.streams = streams

    def note(self, now: float, count: int, busy: float) -> int:
        return self.streams

    def refused(self, now: float) -> None:
        self.streams = max(1, self.streams // 2)


def connections(objects: int, streams: int | None) -> int:
    """Return the number of connections to open: one for each of `objects` objects, and more for large ones."""
    return objects + (streams or MOST)


def make_tuner(streams: int | None, left: int, now: float) -> Tuner | Fixed:
    """Return the tuner for one object. streams: the setting; None to find the best number by measuring.

    left: bytes that are still to be read. now: the time in seconds.
    """
    if streams is None and left >= LARGE:
        return Tuner(now)
    if streams is None or left < LEAST:
        return Fixed(1)
    return Fixed(min(streams, MOST_USED))
