"""A stub S3 that stamps each request with the time at which it arrived, whatever else its process does meanwhile."""

from __future__ import annotations

import asyncio
import selectors
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from tests.support.servers.http_server import Answer, Asked, Later
from tests.support.servers.stub import StubServer

Arrival = tuple[float, float]
"""The earliest and the latest time, on a monotonic clock, at which a request can have arrived."""


class _NotedSelector(selectors.DefaultSelector):
    """Notes when it last looked for what has arrived. looks: the times of the last three looks, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = deque([time.monotonic()] * 3, 3)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(timeout)
        self.looks.append(time.monotonic())
        return found


class StampingStub(StubServer):
    """arrivals: of each request, in the order in which they were seen.

    A machine at work delays the server, which then finds in one look what arrived since its last look. So a request
    arrived before it is seen, and not before the look before: its connection is found by one look, its bytes by the
    next.
    """

    def __init__(self) -> None:
        super().__init__(record=False)
        self.arrivals: list[Arrival] = []
        self._selector = _NotedSelector()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(self._selector)) as runner:
                runner.run(self._until_stopped())
        finally:
            self._ready.set()

    def answer(self, asked: Asked) -> Answer | Later:
        self.arrivals.append((self._selector.looks[0], time.monotonic()))
        return super().answer(asked)


def most_in_a_second(arrivals: Sequence[Arrival]) -> int:
    """Return the largest number of requests that certainly arrived within the same second, wherever it begins.

    arrivals: in the order in which they were seen, so that neither time ever falls.
    """
    latest = [one[1] for one in arrivals]
    return max((bisect_left(latest, one[0] + 1.0) - at for at, one in enumerate(arrivals)), default=0)
