"""Three published ways to gather ACLs on Lambda, rewritten here with their faults.

serial: a client of the module, one call after the other. executor: the same client, all calls at once in the default
pool of threads. aioboto3: a client of each invocation, all calls at once. All three read the first page of the listing
only, and keep every default of their libraries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final

from benchmarks.meter import Meter
from benchmarks.server.objects import BUCKET

METHODS: Final = {"acl": "get_object_acl", "head": "head_object"}

Measuring = Callable[[], AbstractContextManager[None]]
"""A context around the calls alone, after listing and opening."""


def module_client(url: str) -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=url)


def _calls(client: Any, page: Any, operations: Sequence[str]) -> list[Callable[[], Any]]:
    methods = [getattr(client, METHODS[operation]) for operation in operations]
    return [
        partial(method, Bucket=BUCKET, Key=entry["Key"]) for entry in page.get("Contents", ()) for method in methods
    ]


def serial(client: Any, operations: Sequence[str], measuring: Measuring = nullcontext) -> list[Any]:
    calls = _calls(client, client.list_objects_v2(Bucket=BUCKET), operations)
    with measuring():
        return [call() for call in calls]


async def executor(client: Any, operations: Sequence[str], measuring: Measuring = nullcontext) -> list[Any]:
    loop = asyncio.get_running_loop()
    calls = _calls(client, client.list_objects_v2(Bucket=BUCKET), operations)
    with measuring():
        return await asyncio.gather(*(loop.run_in_executor(None, call) for call in calls))


async def asynchronous(url: str, operations: Sequence[str], measuring: Measuring = nullcontext) -> list[Any]:
    import aioboto3

    async with aioboto3.Session().client("s3", endpoint_url=url) as client:
        calls = _calls(client, await client.list_objects_v2(Bucket=BUCKET), operations)
        with measuring():
            return await asyncio.gather(*(call() for call in calls))


def function(way: str, url: str, operations: Sequence[str]) -> Callable[[Measuring], list[Any]]:
    """The function as its handler calls it, after its module's own set-up."""
    if way == "aioboto3":
        return lambda measuring: asyncio.run(asynchronous(url, operations, measuring))
    client = module_client(url)
    if way == "serial":
        return lambda measuring: serial(client, operations, measuring)
    return lambda measuring: asyncio.run(executor(client, operations, measuring))


def calls(meter: Meter, *, url: str, way: str, operations: Sequence[str]) -> dict[str, Any]:
    """Measure the calls of one invocation, after a first one as warm-up."""
    invoke = function(way, url, operations)
    invoke(nullcontext)
    return {"calls": len(invoke(meter.measuring))}
