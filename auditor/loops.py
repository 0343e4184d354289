"""The event loop of every program of ours: uvloop's, which takes half the CPU of the standard one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for `asyncio.Runner(loop_factory=new_loop)`."""
    try:
        import uvloop  # not on Windows
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run does."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)
