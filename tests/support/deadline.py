"""The deadline of a function, which comes when a test says so, and not when a busy machine is slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from auditor.lambdas.deadline import DEADLINE, FunctionStop
from tests.support.servers.stub_faults import Fault, Plan


class Deadline:
    """It serves as `stopping` of a FunctionContext. margin: seconds from the stop to the deadline. cut: seconds from
    the stop until requests in flight are cut off; None: the share of the margin that a function takes.
    """

    def __init__(self, margin: float = 60.0, cut: float | None = None) -> None:
        self.margin = margin
        self._cut = cut
        self._now: tuple[asyncio.AbstractEventLoop, FunctionStop] | None = None

    @contextmanager
    def __call__(self, seconds_left: float | None) -> Iterator[FunctionStop]:
        stop = FunctionStop(self.margin)
        if self._cut is not None:
            stop._grace = replace(stop._grace, flight=self._cut, sending=self._cut)
        self._now = asyncio.get_running_loop(), stop
        try:
            yield stop
        finally:
            self._now = None

    def come(self) -> None:
        """From any thread; without an invocation nothing happens."""
        if self._now is not None:
            loop, stop = self._now
            loop.call_soon_threadsafe(stop.set, DEADLINE)

    def at(self, *keys: str) -> Plan:
        """A plan under which the deadline comes at the first call for each of these keys."""
        left = set(keys)

        def plan(operation: str, key: str, nth: int) -> Fault | None:
            if key in left:
                left.discard(key)
                self.come()
            return None

        return plan

    def before(self, *keys: str) -> Plan:
        """As at(), but these calls are answered after the deadline has come. The event loop must be free meanwhile."""
        left = set(keys)

        def plan(operation: str, key: str, nth: int) -> Fault | None:
            if key in left and self._now is not None:
                left.discard(key)
                _, stop = self._now
                self.come()
                while not stop:
                    time.sleep(0.01)
            return None

        return plan
