"""Make the event loop of the auditor's programs: uvloop if it is installed, which takes half the CPU."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

try:
    import uvloop
except ImportError:  # on Windows
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop

T = TypeVar("T")
COLLECT_AFTER: Final = 20_000
"""The garbage collector runs when the number of new containers exceeds the number of freed ones by this.

An audit holds fewer containers at a time, and makes no reference cycles. Python's default is far lower: with it the
collector would scan the same objects again and again.
"""

LARGE: Final = 128 * 1024
"""Bytes. glibc gets each buffer of this size or more from the system, and returns it when the buffer is freed."""

_M_MMAP_THRESHOLD: Final = -3


def new_loop() -> asyncio.AbstractEventLoop:
    """Make an event loop, for asyncio.Runner, and tune the process's garbage collector and memory allocator."""
    _collect_rarely()
    _map_large_buffers()
    return new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine as asyncio.run() does, but on a loop of new_loop()."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def _collect_rarely() -> None:
    threshold, *older = gc.get_threshold()
    if 0 < threshold < COLLECT_AFTER:  # 0: the collector is off
        gc.set_threshold(COLLECT_AFTER, *older)


def trim() -> None:
    """Return freed memory to the system, also from the middle of the heap (malloc_trim of glibc).

    This takes milliseconds. Each closed connection leaves holes in the heap, and the next one uses other pages, so that
    memory grows over hours.
    """
    _ask_glibc("malloc_trim", 0)


def _map_large_buffers() -> None:
    """Let glibc map each large buffer on its own, and return it to the system when it is freed (mallopt).

    By default large buffers lie in the heap. Small objects fragment it, and the 256 KiB buffers that uvloop allocates
    for each TLS connection then use more and more pages.
    """
    _ask_glibc("mallopt", _M_MMAP_THRESHOLD, LARGE)


def _ask_glibc(function: str, *arguments: int) -> None:
    try:
        getattr(ctypes.CDLL(None), function)(*arguments)
    except (AttributeError, OSError, TypeError):
        return  # the C library is not glibc


def wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
