"""A bucket's other users: a fixed rate of calls, each timed from the moment when it was due."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import uvloop

from benchmarks.clients.floor import FloorConnection, connect, prepared
from benchmarks.meter import Meter, come_first
from benchmarks.server.objects import BUCKET, key_of

TICK: Final = 0.001
KEYS: Final = 1000


class Foreground:
    """rate: calls a second. latencies: microseconds, by the whole second in which the call was due."""

    def __init__(self, requests: Sequence[bytes], rate: float) -> None:
        self.latencies: dict[int, list[int]] = {}
        self.refused: Counter[int] = Counter()
        self.failed = 0
        self._requests: Iterator[bytes] = itertools.cycle(requests)
        self._rate = rate
        self._connections: list[FloorConnection] = []
        self._idle: list[FloorConnection] = []
        self._next_tick: asyncio.TimerHandle | None = None
        self._due: deque[float] = deque()
        self._sent: dict[FloorConnection, float] = {}
        self._released = 0
        self._began = 0.0

    async def open(self, url: str, authority: str | None, connections: int) -> None:
        """authority: path of the server's certificate authority; None for plain HTTP."""
        tls = ssl.create_default_context(cafile=authority) if authority else None
        for _ in range(connections):
            self._connections.append(cast(FloorConnection, await connect(url, tls, self._answered)))
        self._idle = [*self._connections]

    def close(self) -> None:
        if self._next_tick is not None:
            self._next_tick.cancel()
        for connection in self._connections:
            connection.close()

    def begin(self) -> None:
        self._began = time.monotonic()
        self._tick()

    def _tick(self) -> None:
        due = int((time.monotonic() - self._began) * self._rate)
        self._due.extend(self._began + number / self._rate for number in range(self._released, due))
        self._released = max(due, self._released)
        self._send()
        self._next_tick = asyncio.get_running_loop().call_later(TICK, self._tick)

    def _send(self) -> None:
        while self._due and self._idle:
            connection = self._idle.pop()
            self._sent[connection] = self._due.popleft()
            connection.send(next(self._requests))

    def _answered(self, connection: FloorConnection, status: bytes) -> None:
        due = self._sent.pop(connection)
        second = int(due)
        self.latencies.setdefault(second, []).append(round(1e6 * (time.monotonic() - due)))
        self.refused[second] += status == b"503"
        self.failed += status not in (b"200", b"503")
        self._idle.append(connection)
        self._send()


def calls(meter: Meter, *, url: str, authority: str, rate: float, connections: int, objects: int) -> dict[str, Any]:
    """Make the calls until the input ends."""
    come_first()
    keys = [key_of(number) for number in range(min(KEYS, objects))]
    requests = prepared(url, BUCKET, keys, ("acl", "head"), time.time())
    foreground = Foreground(requests, rate)

    async def run() -> None:
        await foreground.open(url, authority, connections)
        with meter.measuring():
            foreground.begin()
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        foreground.close()

    uvloop.run(run())
    if foreground.failed:
        raise RuntimeError(f"{foreground.failed} calls had another status than 200 or 503")
    return {"latencies": foreground.latencies, "refused": foreground.refused}
