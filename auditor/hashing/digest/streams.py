"""How many ranges of one object to read at the same time, and how large: by its size and by the measured rate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from auditor.hashing.limits import BUFFER, LARGE, MIB

MOST: Final = 8
"""Streams of an object at most, unless a setting asks for more."""
LEAST: Final = 8 * MIB
"""Bytes below which an object is read by one stream, whatever the setting."""
MOST_USED: Final = 32
"""Streams of an object at most, whatever the setting: at 25 MB/s each they bring more bytes than one core hashes."""
MEMORY: Final = 36 * MIB
"""Bytes of all blocks of one object."""
WITH_CONNECTIONS: Final = 60 * MIB
"""Bytes of the blocks and the connections together."""
PER_CONNECTION: Final = 896 * 1024
"""Bytes that TLS and the event loop hold of one connection (measured)."""
LARGEST_BLOCK: Final = 9 * MIB
"""Bytes. At 25 MB/s a block takes 380 ms, so that 30 ms until its first byte cost 8 %."""
_STEP: Final = 4 * 1024
WINDOW: Final = 0.4
"""Seconds over which a rate is measured."""
SETTLING: Final = 0.2
"""Seconds after a change that are not measured."""
FAST: Final = 100e6
"""Bytes a second of one stream from which more streams are not tried: S3 gives about 90 MB/s to a connection (S3 User
Guide, performance guidelines), so that something else is the limit."""
GAIN: Final = 1.2
"""More streams must raise the rate by this factor."""
BUSY: Final = 0.8
"""Share of a core from which the CPU, not the network, is the limit."""
ONE_CORE: Final = 1769
"""MB of a function's memory that buy one core (AWS Lambda Developer Guide, memory)."""
HOLD: Final = 30.0
"""Seconds until more streams are tried again after they gained nothing; doubled each time."""
LONGEST_HOLD: Final = 600.0


def function_memory(environ: Mapping[str, str] = os.environ) -> int | None:
    """MB of memory of the Lambda function that runs this process; None outside Lambda."""
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return int(memory) if memory.isdecimal() and int(memory) else None


def core_share(environ: Mapping[str, str] = os.environ) -> float:
    """The share of one core that the event loop can use, 1.0 at most: a function has a share by its memory."""
    return min(1.0, (function_memory(environ) or ONE_CORE) / ONE_CORE)


@dataclass(frozen=True, slots=True)
class RangeLayout:
    """block: bytes of one ranged GET, read into buffers of `buffer` bytes each. memory: bytes of all blocks that are
    being read or wait for the hasher.
    """

    block: int
    buffer: int
    memory: int


def layout(streams: int, left: int) -> RangeLayout:
    """The layout for `streams` streams (MOST_USED at most) over the `left` bytes of the object.

    A block is as large as the memory allows, one for each stream, since every block begins with a wait for S3. Every
    stream has equally many blocks, so that all end at the same time.
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
    """Doubles the streams while the rate grows by a fifth or more, and goes back when it does not.

    Every method gets the time in seconds. streams: as many as are wanted now.
    """

    def __init__(self, now: float) -> None:
        self.streams = 1
        self._before: tuple[int, float] | None = None
        self._hold = HOLD
        self._held_until = now
        self._mark: tuple[float, int, float] | None = None
        self._settled_at = now

    def note(self, now: float, count: int, busy: float) -> int:
        """Return the wanted streams. count: bytes hashed so far. busy: CPU seconds so far, scaled to a whole core."""
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
        """Go back: the memory does not suffice for the wanted streams, or S3 asks for fewer calls."""
        fewer = self._before[0] if self._before is not None else max(1, self.streams // 2)
        self._go_back(now, fewer)

    def _decide(self, now: float, rate: float, share: float) -> None:
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
    """The streams of the setting, or as many of them as the memory allows."""

    def __init__(self, streams: int) -> None:
        self.streams = streams

    def note(self, now: float, count: int, busy: float) -> int:
        return self.streams

    def refused(self, now: float) -> None:
        self.streams = max(1, self.streams // 2)


def connections(objects: int, streams: int | None) -> int:
    """Connections for `objects` objects, one of which has several streams, or for the listing beside it."""
    return objects + (streams or MOST)


def make_tuner(streams: int | None, left: int, now: float) -> Tuner | Fixed:
    """streams: None is auto. left: bytes to read."""
    if streams is None and left >= LARGE:
        return Tuner(now)
    if streams is None or left < LEAST:
        return Fixed(1)
    return Fixed(min(streams, MOST_USED))
