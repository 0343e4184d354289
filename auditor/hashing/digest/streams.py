"""How many ranges of one object to read at once, and how large: decided by its size and by what was measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024
MOST: Final = 8
"""Streams that are tried of themselves."""
AUTO_FROM: Final = 64 * MIB
"""Bytes below which one stream is all that is tried."""
LEAST: Final = 8 * MIB
"""Bytes below which an object is read by one stream whatever is asked for."""
MOST_USED: Final = 32
"""Streams beyond which none are opened, whatever is asked for: at 25 MB/s each they bring more than is hashed."""
MEMORY: Final = 36 * MIB
"""Bytes of all blocks of one object."""
WITH_CONNECTIONS: Final = 60 * MIB
PER_CONNECTION: Final = 896 * 1024
"""Bytes of the blocks and the connections together, and what TLS and the loop hold of each connection (measured)."""
LARGEST_BLOCK: Final = 9 * MIB
"""At 25 MB/s it takes 380 ms, so that 30 ms until its first byte cost 8 %."""
BUFFER: Final = MIB
"""Bytes that are read, and handed to the hasher, at a time, whatever larger chunk is asked for: larger ones leave the
CPU's cache before they are hashed, and smaller ones are handed over more often (docs/performance.md)."""
_STEP: Final = 4 * 1024
WINDOW: Final = 0.4
SETTLING: Final = 0.2
"""Seconds over which a rate is measured, and that are left out after a change."""
FAST: Final = 100e6
"""Bytes a second of one stream from which further ones are not tried: S3 gives about 90 MB/s to a connection (S3 User
Guide, performance guidelines), so that something else is the limit."""
GAIN: Final = 1.2
BUSY: Final = 0.8
"""Share of a core from which the CPU, not the network, is the limit."""
ONE_CORE: Final = 1769
"""MB of a function's memory that buy one core (AWS Lambda Developer Guide, memory)."""
HOLD: Final = 30.0
LONGEST_HOLD: Final = 600.0
"""Seconds until more streams are tried again after they gained nothing; doubled each time."""


def function_memory(environ: Mapping[str, str] = os.environ) -> int | None:
    """MB of the Lambda function that this process is; None where it is none."""
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return int(memory) if memory.isdecimal() and int(memory) else None


def core_share(environ: Mapping[str, str] = os.environ) -> float:
    """How much of one core the event loop can have, 1.0 at most: a function has a share by its memory."""
    return min(1.0, (function_memory(environ) or ONE_CORE) / ONE_CORE)


@dataclass(frozen=True, slots=True)
class RangeLayout:
    """block: bytes of one ranged GET, in buffers of `buffer` bytes. memory: bytes of all blocks that are read, or wait
    for being hashed.
    """

    block: int
    buffer: int
    memory: int


def layout(streams: int, left: int) -> RangeLayout:
    """For so many streams, MOST_USED at most, over the bytes that are left.

    Blocks are as large as the memory holds, one for each stream, since every block begins with a wait for S3; and there
    are as many for each stream, so that all end together.
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

    Every method is told the time, in seconds. streams: how many are wanted now.
    """

    def __init__(self, now: float) -> None:
        self.streams = 1
        self._before: tuple[int, float] | None = None
        self._hold = HOLD
        self._held_until = now
        self._mark: tuple[float, int, float] | None = None
        self._settled_at = now

    def note(self, now: float, count: int, busy: float) -> int:
        """How many streams are wanted. count: bytes hashed so far. busy: CPU seconds so far, of what can be had."""
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
        """What was wanted last cannot be had: there is no memory for it, or S3 asks for fewer calls."""
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
    """The streams that were asked for, or as many of them as there is memory for."""

    def __init__(self, streams: int) -> None:
        self.streams = streams

    def note(self, now: float, count: int, busy: float) -> int:
        return self.streams

    def refused(self, now: float) -> None:
        self.streams = max(1, self.streams // 2)


def make_tuner(streams: int | None, left: int, now: float) -> Tuner | Fixed:
    """streams: None is auto. left: bytes to be read."""
    if streams is None and left >= AUTO_FROM:
        return Tuner(now)
    if streams is None or left < LEAST:
        return Fixed(1)
    return Fixed(min(streams, MOST_USED))
