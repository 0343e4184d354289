"""Short of a function's deadline its work is left, so that there is time to save it and to hand it on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from auditor.stop import Stop

DEADLINE: Final = "the deadline is near"
MARGIN_SECONDS: Final = 45.0
MARGIN_SHARE: Final = 0.25
"""Work is left this long before the deadline, or a quarter of the time left at the start where that is less."""


@contextmanager
def short_of(seconds_left: float | None) -> Iterator[Stop]:
    """A stop that is set at the margin before the deadline; None: there is none."""
    stop = Stop()
    if seconds_left is None:
        yield stop
        return
    margin = min(MARGIN_SECONDS, max(0.0, seconds_left) * MARGIN_SHARE)
    timer = asyncio.get_running_loop().call_later(seconds_left - margin, stop.set, DEADLINE)
    try:
        yield stop
    finally:
        timer.cancel()
