"""The event loop of every program of ours: uvloop's, which takes half the CPU of the standard one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

YOUNG: Final = 20_000
"""Containers made and not freed until the collector looks for cycles: more than an audit has in hand at a time.

With Python's own few hundred it goes through them again and again, for cycles that an audit does not make.
"""


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for `asyncio.Runner(loop_factory=new_loop)`; from then on the process collects cycles less often."""
    _collect_rarely()
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
