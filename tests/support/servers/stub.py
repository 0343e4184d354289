"""A stub of S3 for tests: real HTTP on 127.0.0.1, a world of plain data, and faults on demand."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any

from tests.support.servers.http_server import After, Answer, Application, Asked, Later, listening
from tests.support.servers.stub_answers import framed, reply_of, spoilt, vanish
from tests.support.servers.stub_calls import Call, Logged, Refused, Reply, call_of
from tests.support.servers.stub_faults import Fault, Kind, Plan
from tests.support.servers.world import StubObject, World


class StubServer(Application):
    """A server in a thread of its own, from `with StubServer(world) as server` on.

    url: where it listens. world, faults: may be changed at any time, from any thread. requests, calls: every request in
    order, short and in full, unless `record` is off. in_flight: requests that wait for their answer.
    """

    def __init__(self, world: World | None = None, *, port: int = 0, record: bool = True) -> None:
        self.world = world if world is not None else World()
        self.faults: list[Plan] = []
        self.record = record
        self.requests: list[Logged] = []
        self.calls: list[Call] = []
        self.url = ""
        self._port = port
        self._asked: Counter[Logged] = Counter()
        self._ready = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._run, name="stub-s3", daemon=True)

    def __enter__(self) -> StubServer:
        self._thread.start()
        if not self._ready.wait(10) or not self.url:
            raise RuntimeError("the stub did not start")
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()
        self._thread.join(10)

    def put(self, bucket: str, key: str, body: bytes | None = b"", **fields: Any) -> StubObject:
        """Store an object; fields: as StubBucket.put takes them."""
        return self.world.buckets[bucket].put(key, body, **fields)

    def forget(self) -> None:
        """Clear the log."""
        self.requests.clear()
        self.calls.clear()

    def count(self, operation: str) -> int:
        """The number of calls of an operation."""
        return sum(1 for logged in self.requests if logged.operation == operation)

    def _run(self) -> None:
        try:
            asyncio.run(self._until_stopped())
        finally:
            self._ready.set()

    async def _until_stopped(self) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        async with listening(self, port=self._port) as self.url:
            self._ready.set()
            await stopped.wait()

    def answer(self, asked: Asked) -> Answer | Later:
        """Called for every request, in the server's thread."""
        call = call_of(asked)
        if self.record:
            self.requests.append(call.logged)
            self.calls.append(call)
        return self.answer_call(call)

    def answer_call(self, call: Call) -> Answer | Later:
        """The answer of the plans, or of the world. Subclasses override it."""
        if not self.faults:
            return framed(reply_of(self.world, call), call)
        self._asked[call.logged] += 1
        return self._next_plan(call, self._asked[call.logged], iter(tuple(self.faults)))

    def _next_plan(self, call: Call, nth: int, plans: Iterator[Plan]) -> Answer | Later:
        """The answer after the plans that are left. After a delay the next one is asked."""
        for plan in plans:
            fault = plan(call.operation, call.key, nth)
            if fault is not None and fault.kind is Kind.DELAY:
                return Later(fault.seconds, partial(self._next_plan, call, nth, plans))
            if fault is not None:
                return self._failed(call, fault)
        return framed(reply_of(self.world, call), call)

    def _failed(self, call: Call, fault: Fault) -> Answer:
        if fault.kind is Kind.BLACK_HOLE:
            return Answer(after=After.STALLED)
        if fault.kind is Kind.RESET:
            return Answer(after=After.RESET)
        if fault.kind is Kind.ERROR:
            return framed(_error(fault, call), call)
        if fault.kind is Kind.VANISH:
            vanish(self.world, call)
        found = framed(spoilt(reply_of(self.world, call), fault, call), call)
        if fault.kind in {Kind.CUT, Kind.STALL}:
            return _half(found, After.STALLED if fault.kind is Kind.STALL else After.CLOSED)
        return found


def _error(fault: Fault, call: Call) -> Reply:
    if not fault.code:
        return Reply(fault.status)
    messages = {"SlowDown": "Please reduce your request rate."}
    return Refused(fault.status, fault.code, messages.get(fault.code, "")).reply(call)


def _half(whole: Answer, after: After) -> Answer:
    """The first half of the body; without a body the connection breaks instead."""
    if isinstance(whole.body, bytes):
        half = whole.body[: len(whole.body) // 2]
        return Answer(whole.head, half, after=after) if whole.body else Answer(after=After.RESET)
    return Answer(whole.head, whole.body, whole.start, whole.length // 2, after)
