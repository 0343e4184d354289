"""Invoke functions repeatedly in one process, as Lambda does: first cold, then warm.

Each lists the bucket and reads every object's ACL; the first invocation's figures include the imports.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext
from typing import Any, Final

from benchmarks.meter import Meter
from benchmarks.server.files import BUCKET as REPORTS
from benchmarks.server.objects import BUCKET, key_of

ACL: Final = ("acl",)


def _invoked(meter: Meter, prepare: Callable[[AsyncExitStack], Callable[[], int]], warm: int) -> dict[str, Any]:
    """prepare: does the work of a module's import, and returns the handler, which returns the number of ACLs read.

    Clients opened for all invocations are not closed before the process ends, as on Lambda.
    """
    kept = AsyncExitStack()
    with meter.measuring():
        handler = prepare(kept)
        calls = handler()
    for _ in range(warm):
        with meter.measuring():
            handler()
    return {"calls": calls}


def article(meter: Meter, *, url: str, way: str, warm: int) -> dict[str, Any]:
    def prepare(stack: AsyncExitStack) -> Callable[[], int]:
        from benchmarks.clients.articles import function

        invoke = function(way, url, ACL)
        return lambda: len(invoke(nullcontext))

    return _invoked(meter, prepare, warm)


def ours(meter: Meter, *, url: str, warm: int, kept: bool) -> dict[str, Any]:
    """Our default engine, rate and concurrency. kept: the engine stays open; else each invocation opens its own."""

    def prepare(stack: AsyncExitStack) -> Callable[[], int]:
        import asyncio

        from auditor.aio.loop import new_loop
        from benchmarks.clients.gathering import gathered, opened

        runner = asyncio.Runner(loop_factory=new_loop)
        if kept:
            engine = runner.run(stack.enter_async_context(opened(url)))
            return lambda: runner.run(gathered(engine))

        async def anew() -> int:
            async with opened(url) as engine:
                return await gathered(engine)

        return lambda: runner.run(anew())

    return _invoked(meter, prepare, warm)


def bare(meter: Meter, *, url: str, authority: str, warm: int, objects: int) -> dict[str, Any]:
    """Bare aiohttp with open connections. It reads a page of the listing, but does not parse it."""

    def prepare(stack: AsyncExitStack) -> Callable[[], int]:
        import asyncio

        import uvloop

        from benchmarks.clients.bare import opened
        from benchmarks.clients.workers import work_through

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        client = runner.run(stack.enter_async_context(opened(url, authority, objects)))

        async def handle() -> int:
            await client.send("GET", f"/{BUCKET}", "list-type=2")
            keys = [key_of(number) for number in range(objects)]
            await work_through(keys, lambda key: client.object(key, ACL), objects)
            return objects

        return lambda: runner.run(handle())

    return _invoked(meter, prepare, warm)


class Context:
    """What Lambda's context object has, for a function of fifteen minutes. Each is another request: a second event of
    one request would find its run complete, and do nothing.
    """

    invoked_function_arn = "arn:aws:lambda:us-east-1:111122223333:function:audit"

    def __init__(self) -> None:
        self.aws_request_id = str(uuid.uuid4())

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


def audit(meter: Meter, *, url: str, warm: int, bucket: bool) -> dict[str, Any]:
    """Our function: the bucket's facts, the objects, the rules and the run folder.

    bucket: the run folder goes into a bucket, as deployed; else into a directory.
    """

    def prepare(stack: AsyncExitStack) -> Callable[[], int]:
        import os

        out = f"s3://{REPORTS}/runs" if bucket else stack.enter_context(tempfile.TemporaryDirectory())
        os.environ |= {"AWS_ENDPOINT_URL": url, "AUDITOR_BUCKETS": BUCKET, "AUDITOR_OUT": out}
        os.environ |= {"AUDITOR_LEVEL": "exposure", "AUDITOR_FAIL_ON": "never", "AUDITOR_MAX_RATE": "2000"}
        from handlers.audit import handler

        def once() -> int:
            with contextlib.redirect_stdout(io.StringIO()):  # the metrics
                (summary,) = handler({}, Context())["runs"]
            return int(summary["coverage"]["audited"])

        return once

    return _invoked(meter, prepare, warm)
