"""The event loop of our programs: uvloop, which takes half the CPU of the standard loop."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
COLLECT_AFTER: Final = 20_000
"""The garbage collector looks for cycles when so many more containers were made than freed.

An audit holds fewer at a time, and makes no cycles. With Python's default of some hundred the collector would go
through its objects again and again.
"""

LARGE: Final = 128 * 1024
"""Bytes: glibc takes a buffer of this size or more from the system, and gives it back when it is freed."""

_M_MMAP_THRESHOLD: Final = -3


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for `asyncio.Runner(loop_factory=new_loop)`; also sets the process's garbage collector and malloc."""
    _collect_rarely()
    _map_large_buffers()
    try:
        import uvloop  # not on Windows
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run, on a loop of ours."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def _collect_rarely() -> None:
    threshold, *older = gc.get_threshold()
    if 0 < threshold < COLLECT_AFTER:  # zero: the collector is turned off
        gc.set_threshold(COLLECT_AFTER, *older)


def trim() -> None:
    """Give freed memory back to the system, from the middle of the heap too (malloc_trim(3)); it takes milliseconds.

    Each connection that closes leaves holes in the heap, and the next one touches other pages; this adds up in hours.
    """
    _ask_glibc("malloc_trim", 0)


def _map_large_buffers() -> None:
    """Let glibc take each large buffer from the system, and give it back when it is freed (mallopt(3)).

    By default glibc serves these buffers from its heap. Small objects then fragment it, and the 256 KiB buffers that
    uvloop takes for each TLS connection touch ever more pages.
    """
    _ask_glibc("mallopt", _M_MMAP_THRESHOLD, LARGE)


def _ask_glibc(function: str, *arguments: int) -> None:
    try:
        getattr(ctypes.CDLL(None), function)(*arguments)
    except (AttributeError, OSError, TypeError):
        return  # another C library


def wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
