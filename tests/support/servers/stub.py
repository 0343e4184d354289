"""A stub of S3 for tests: real HTTP on 127.0.0.1, a world of plain data, and faults on demand."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final
from urllib.parse import parse_qsl

from aiohttp import web

from tests.support.servers.ends import all_ended, no_longer_listening
from tests.support.servers.stub_answers import answer, spoilt, vanish
from tests.support.servers.stub_calls import Call, Logged, Refused, Reply, understand
from tests.support.servers.stub_faults import Fault, Kind, Plan
from tests.support.servers.world import StubObject, World

CHUNK: Final = 256 * 1024
LONGEST_LINE: Final = 64 * 1024
NO_LINGER: Final = struct.pack("ii", 1, 0)


class StubServer:
    """A server in a thread of its own, from `with StubServer(world) as server` on.

    url: where it listens. world, faults: may be changed at any time, from any thread. requests, calls: every request in
    order, short and in full, unless `record` is off. in_flight, peak_in_flight: requests that wait for their answer.
    """

    def __init__(self, world: World | None = None, *, port: int = 0, record: bool = True) -> None:
        self.world = world if world is not None else World()
        self.faults: list[Plan] = []
        self.record = record
        self.requests: list[Logged] = []
        self.calls: list[Call] = []
        self.in_flight = 0
        self.peak_in_flight = 0
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
        self.peak_in_flight = self.in_flight

    def count(self, operation: str) -> int:
        """The number of calls of an operation."""
        return sum(1 for logged in self.requests if logged.operation == operation)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Serve in this event loop; yields the URL."""
        loop = asyncio.get_running_loop()
        transports: list[asyncio.BaseTransport] = []

        class Handler(web.RequestHandler):
            """aiohttp's, whose connection is remembered when it itself has forgotten it."""

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                transports.append(transport)
                super().connection_made(transport)

        requests = web.Server(self._serve, handler_cancellation=True)
        server = await loop.create_server(
            lambda: Handler(
                requests,
                loop=loop,
                access_log=None,  # type: ignore[arg-type] # none is kept
                max_line_size=LONGEST_LINE,
                max_field_size=LONGEST_LINE,
            ),
            "127.0.0.1",
            self._port,
            backlog=1024,
        )
        try:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self.url
        finally:
            await no_longer_listening(server)
            await requests.shutdown(0.1)
            await all_ended(transports)

    def _run(self) -> None:
        try:
            asyncio.run(self._until_stopped())
        finally:
            self._ready.set()

    async def _until_stopped(self) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        async with self.listening():
            self._ready.set()
            await stopped.wait()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        try:
            form = dict(parse_qsl(await request.text())) if request.method == "POST" else None
            call = understand(request.method, request.raw_path, request.headers, form)
            if self.record:
                self.requests.append(call.logged)
                self.calls.append(call)
            return await self._answer(request, call)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        fault = await self._fault(call)
        if fault is None:
            return await _send(request, call, answer(self.world, call))
        if fault.kind is Kind.BLACK_HOLE:
            await asyncio.Event().wait()
        if fault.kind is Kind.RESET:
            return _hang_up(request)
        if fault.kind is Kind.ERROR:
            return await _send(request, call, _error(fault, call))
        if fault.kind is Kind.VANISH:
            vanish(self.world, call)
        reply = spoilt(answer(self.world, call), fault, call)
        if fault.kind in {Kind.CUT, Kind.STALL}:
            return await _send_half(request, call, reply, stalls=fault.kind is Kind.STALL)
        return await _send(request, call, reply)

    async def _fault(self, call: Call) -> Fault | None:
        """The fault of this call. It waits for delays, and then asks the next plan."""
        if not self.faults:
            return None
        self._asked[call.logged] += 1
        nth = self._asked[call.logged]
        for plan in tuple(self.faults):
            fault = plan(call.operation, call.key, nth)
            if fault is not None and fault.kind is Kind.DELAY:
                await asyncio.sleep(fault.seconds)
            elif fault is not None:
                return fault
        return None


def _error(fault: Fault, call: Call) -> Reply:
    if not fault.code:
        return Reply(fault.status)
    messages = {"SlowDown": "Please reduce your request rate."}
    return Refused(fault.status, fault.code, messages.get(fault.code, "")).reply(call)


async def _send(request: web.BaseRequest, call: Call, reply: Reply) -> web.StreamResponse:
    headers = _common(reply, call)
    item = reply.item
    if item is None:
        return web.Response(status=reply.status, headers=headers, body=reply.body or None)
    if reply.length <= CHUNK:
        return web.Response(status=reply.status, headers=headers, body=item.read(reply.start, reply.length))
    response = web.StreamResponse(status=reply.status, headers={**headers, "Content-Length": str(reply.length)})
    await response.prepare(request)
    for offset in range(0, reply.length, CHUNK):
        await response.write(item.read(reply.start + offset, min(CHUNK, reply.length - offset)))
    return response


async def _send_half(request: web.BaseRequest, call: Call, reply: Reply, *, stalls: bool) -> web.StreamResponse:
    body = reply.body if reply.item is None else reply.item.read(reply.start, reply.length)
    if not body:
        return _hang_up(request)
    response = web.StreamResponse(
        status=reply.status, headers={**_common(reply, call), "Content-Length": str(len(body))}
    )
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if stalls:
        await asyncio.Event().wait()
    if request.transport is not None:
        request.transport.close()
    return response


def _hang_up(request: web.BaseRequest) -> web.StreamResponse:
    """Break the connection with a reset (RST, not FIN); the returned answer is not sent."""
    if request.transport is not None:
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        request.transport.abort()
    return web.Response()


def _common(reply: Reply, call: Call) -> dict[str, str]:
    return {"Server": "AmazonS3", "x-amz-request-id": call.request_id, "x-amz-id-2": "stub", **reply.headers}
