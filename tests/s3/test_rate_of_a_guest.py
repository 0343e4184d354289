"""The rate against a server that refuses what passes its limit, in simulated time: alone, and as a guest."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from auditor.s3.rate import RateLimit

Process = Iterator["float | deque[Process]"]


class Simulation:
    """Runs generators in simulated time; each yields the seconds that it waits, or the row in which it waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = itertools.count()
        self._events: list[tuple[float, int, Process]] = []

    def start(self, process: Process) -> None:
        heapq.heappush(self._events, (self.now, next(self._order), process))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] < until:
            self.now, _, process = heapq.heappop(self._events)
            wait = next(process, None)
            if isinstance(wait, deque):
                wait.append(process)
            elif wait is not None:
                heapq.heappush(self._events, (self.now + wait, next(self._order), process))


class Row:
    """Callers who wait for their turns, as in RateLimit.take()."""

    def __init__(self, time: Simulation, rate: RateLimit) -> None:
        self._time, self._rate, self._taken = time, rate, False
        self._waiting: deque[Process] = deque()

    def turn(self) -> Process:
        if not self._rate.limited:
            return
        if self._taken:
            yield self._waiting
        self._taken = True
        while (wait := self._rate.row.turn()) > 0:
            yield wait
        if self._waiting:
            self._time.start(self._waiting.popleft())
        else:
            self._taken = False


@dataclass
class Server:
    """Answers `rate` calls a second, after a reserve of one second of them."""

    time: Simulation
    rate: float
    latency: float
    counts: Counter[str] = field(default_factory=Counter)
    left: float = 0.0
    at: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.rate

    def asked(self, who: str) -> bool:
        """True: answered; False: refused."""
        self.left = min(self.rate, self.left + (self.time.now - self.at) * self.rate)
        self.at = self.time.now
        answered = self.left >= 1.0
        self.left -= answered
        self.counts[f"{who} {'answered' if answered else 'refused'}"] += 1
        return answered

    def refused_share(self, who: str) -> float:
        refused = self.counts[f"{who} refused"]
        return refused / (refused + self.counts[f"{who} answered"])


def audit(time: Simulation, server: Server, rate: RateLimit, row: Row, dice: random.Random) -> Process:
    """One of many calls in flight: it takes a turn, calls, and calls again a little later after a refusal."""
    pause = 0.1
    while True:
        yield from row.turn()
        sent = time.now
        answered = server.asked("audit")
        yield server.latency
        if answered:
            rate.answered(time.now, sent)
            pause = 0.1
        else:
            rate.refused(time.now, sent)
            yield dice.uniform(0, pause)
            pause = min(20.0, 2 * pause)


def users(server: Server, per_second: float) -> Process:
    while True:
        server.asked("users")
        yield 1.0 / per_second


def started(limit: float, latency: float, *, own: float = 0.0) -> tuple[Simulation, Server, RateLimit]:
    """128 in flight; own: calls a second of the bucket's users."""
    time = Simulation()
    server = Server(time, limit, latency)
    rate = RateLimit(None, clock=lambda: time.now)
    if own:
        time.start(users(server, own))
    row = Row(time, rate)
    for number in range(128):
        time.start(audit(time, server, rate, row, random.Random(number)))
    return time, server, rate


@pytest.mark.parametrize("latency", [0.005, 0.02])
@pytest.mark.parametrize("limit", [200, 500, 5000])
def test_settled_it_gets_all_that_the_server_gives_and_is_hardly_refused(limit: float, latency: float) -> None:
    time, server, _ = started(limit, latency)
    time.run(5)
    server.counts.clear()
    time.run(65)
    assert server.counts["audit answered"] >= 0.9 * limit * 60
    assert server.refused_share("audit") < 0.05


@pytest.mark.parametrize("latency", [0.005, 0.02])
@pytest.mark.parametrize("limit", [500, 5000])
def test_the_buckets_users_hardly_notice_a_guest_without_a_ceiling(limit: float, latency: float) -> None:
    time, server, _ = started(limit, latency, own=0.8 * limit)
    time.run(60)
    assert server.refused_share("users") < 0.01
    assert server.counts["audit answered"] >= 0.8 * 0.2 * limit * 60


def test_a_limit_that_rises_is_found_within_a_minute() -> None:
    time, server, _ = started(500, 0.01)
    time.run(20)
    server.rate = 5000
    time.run(80)
    server.counts.clear()
    time.run(90)
    assert server.counts["audit answered"] >= 0.9 * 5000 * 10


def test_it_is_never_faster_than_the_users_ceiling() -> None:
    time = Simulation()
    server = Server(time, 500, 0.01)
    rate = RateLimit(200, clock=lambda: time.now)
    row = Row(time, rate)
    for number in range(128):
        time.start(audit(time, server, rate, row, random.Random(number)))
    time.run(10)
    for _ in range(100):
        rate.refused(time.now, time.now)
    assert rate.statistics().per_second < 200
    time.run(200)
    assert rate.statistics().per_second == 200
    assert server.counts["audit answered"] <= 200 * 200 + 20
