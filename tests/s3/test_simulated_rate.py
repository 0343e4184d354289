"""The rate and the permits, in simulated time, against a server that refuses calls above its limit, or by chance."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest

from auditor.s3.calls import ConcurrencyLimit
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


CPU: Final = 0.00015
"""Seconds that our process needs for a call: it makes one at a time."""
LATENCY: Final = 0.015


@dataclass
class Server:
    """Refuses a share of the calls by chance, and those above its limit a second.

    whole_seconds: the limit is of each second of the clock; False: of a token bucket that holds a second of them.
    """

    time: Simulation
    share: float = 0.0
    limit: float | None = None
    whole_seconds: bool = False
    latency: float = LATENCY
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    counts: Counter[str] = field(default_factory=Counter)
    left: float = 0.0
    at: float = 0.0

    def asked(self, who: str) -> bool:
        answered = self._within_limit() and self.dice.random() >= self.share
        self.counts[f"{who} {'answered' if answered else 'refused'}"] += 1
        return answered

    def _within_limit(self) -> bool:
        if self.limit is None:
            return True
        if not self.whole_seconds:
            self.left += (self.time.now - self.at) * self.limit
        elif int(self.time.now) > int(self.at):
            self.left = self.limit
        self.left, self.at = min(self.limit, self.left), self.time.now
        allowed = self.left >= 1.0
        self.left -= allowed
        return allowed

    def refused_share(self, who: str) -> float:
        refused = self.counts[f"{who} refused"]
        return refused / (refused + self.counts[f"{who} answered"])


class Audit:
    """Makes calls as Caller does: a permit for each, its turn, and after a refusal a pause that grows."""

    def __init__(self, server: Server, *, ceiling: float | None = None) -> None:
        time = self.time = server.time
        self.server = server
        self.rate = RateLimit(ceiling, clock=lambda: time.now)
        self._row = Row(time, self.rate)
        self.permits = ConcurrencyLimit(128, auto=True, first=16, clock=lambda: time.now)
        self.server.left = self.server.limit or 0.0
        self.done, self.given_up, self._running, self._busy_until = 0, 0, 0, 0.0
        self._dice = random.Random(2)
        time.start(self._starting())

    def _starting(self) -> Process:
        while True:
            while self._running < self.permits.statistics().limit:
                self._running += 1
                self.time.start(self._one())
            yield 0.001

    def _one(self) -> Process:
        for attempt in range(10):
            yield from self._row.turn()
            sent = self.time.now
            self._busy_until = max(self._busy_until, sent) + CPU
            yield self._busy_until - sent
            answered = self.server.asked("audit")
            yield self.server.latency
            if answered:
                self.permits.answered(self.time.now - sent)
                self.rate.answered(self.time.now, sent)
                self.done += 1
                break
            if self.rate.refused(self.time.now, sent):
                self.permits.throttled()
            first, longest = (0.1, 20.0) if self.rate.waiting_helps else (0.025, 0.5)
            yield min(longest, first * 2**attempt) * self._dice.random()
        else:
            self.given_up += 1
        self._running -= 1


def world(*, ceiling: float | None = None, **server: float | bool) -> tuple[Simulation, Server, Audit]:
    time = Simulation()
    made = Server(time, dice=random.Random(int(server.pop("seed", 1))), **server)  # type: ignore[arg-type]
    return time, made, Audit(made, ceiling=ceiling)


def users(server: Server, per_second: float) -> Process:
    while True:
        server.asked("users")
        yield 1.0 / per_second


@pytest.mark.parametrize("ceiling", [None, 2000.0])
def test_half_of_what_a_quiet_server_answers_at_least(ceiling: float | None) -> None:
    quiet, _, reference = world(ceiling=ceiling)
    quiet.run(8)
    for share in (0.03, 0.3):
        time, _, audit = world(ceiling=ceiling, share=share)
        time.run(8)
        assert audit.done >= 0.5 * (1 - share) * reference.done, share
        assert audit.given_up <= 1e-3 * audit.done, share


@pytest.mark.parametrize("whole_seconds", [False, True])
@pytest.mark.parametrize("limit", [200.0, 500.0])
def test_a_limit_is_obeyed(limit: float, whole_seconds: bool) -> None:
    time, server, audit = world(limit=limit, whole_seconds=whole_seconds)
    time.run(5)
    server.counts.clear()
    time.run(35)
    assert server.refused_share("audit") < 0.05
    # Where the clock's second counts, a fall may come while the rest of the second is refused: so it is deep.
    assert server.counts["audit answered"] >= (0.3 if whole_seconds else 0.9) * limit * 30
    assert audit.rate.statistics().per_second < 1.5 * limit


def test_it_is_never_faster_than_the_users_ceiling() -> None:
    time, server, audit = world(limit=500.0, ceiling=200.0)
    time.run(10)
    for _ in range(100):
        audit.rate.refused(time.now, time.now)
    assert audit.rate.statistics().per_second < 200
    time.run(200)
    assert audit.rate.statistics().per_second == 200
    assert server.counts["audit answered"] <= 200 * 200 + 20


def test_the_buckets_users_pay_little_for_what_the_audit_tries() -> None:
    time, server, audit = world(limit=500.0)
    time.start(users(server, 400.0))
    time.run(60)
    assert server.refused_share("users") < 0.01
    assert audit.done >= 0.8 * 100 * 60


def test_refusals_by_chance_that_end_are_forgotten_and_a_limit_then_counts() -> None:
    time, server, audit = world(share=0.1)
    time.run(5)
    assert audit.rate.statistics().incurable == pytest.approx(0.1, abs=0.05)
    server.share, server.limit = 0.0, 500.0
    time.run(30)
    server.counts.clear()
    time.run(60)
    assert audit.rate.statistics().incurable < 0.02
    assert server.refused_share("audit") < 0.05
    assert server.counts["audit answered"] >= 0.8 * 500 * 30
