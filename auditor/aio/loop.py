"""The event loop of every program of ours: uvloop's, which takes half the CPU of the standard one."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
YOUNG: Final = 20_000
"""Containers made and not freed until the collector looks for cycles: more than an audit has in hand at a time.

With Python's own few hundred it goes through them again and again, for cycles that an audit does not make.
"""

LARGE: Final = 128 * 1024
"""Bytes from which on a buffer is taken from the system, and given back to it."""

_M_MMAP_THRESHOLD: Final = -3


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for `asyncio.Runner(loop_factory=new_loop)`; from then on the process collects cycles less often."""
    _collect_rarely()
    _give_back()
    try:
        import uvloop  # not on Windows
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run does."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def _collect_rarely() -> None:
    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:  # zero: somebody has turned the collector off
        gc.set_threshold(YOUNG, *older)


def trim() -> None:
    """Give what was freed back to the system, from the middle of the heap too (malloc_trim(3)); takes milliseconds.

    A connection that comes and goes leaves holes, and each new one touches others: in hours that would add up.
    """
    _ask_glibc("malloc_trim", 0)


def _give_back() -> None:
    """Let glibc take each large buffer from the system, and give it back when it is freed (mallopt(3)).

    Left to itself it soon keeps them in its heap, where small objects settle in the holes: the quarter of a mebibyte
    that uvloop takes for each TLS connection would be touched in ever other places as connections come and go.
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
