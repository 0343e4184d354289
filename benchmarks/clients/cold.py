"""Time the imports, the opening and the first ACL of a client, and a whole command."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.meter import Lap, Meter
from benchmarks.server.objects import BUCKET, key_of


def _engine(url: str, name: str) -> None:
    from auditor.aio import loop as loops
    from auditor.aws.connection import Connection
    from auditor.s3.engines import ENGINES

    async def first() -> None:
        connection = Connection(bucket=BUCKET, region="us-east-1", endpoint_url=url, concurrency=1)
        async with ENGINES[name](connection) as engine:
            await engine.get_acl(key_of(1), None)

    loops.run(first())


def _sdk(url: str) -> None:
    import boto3

    boto3.client("s3", endpoint_url=url).get_object_acl(Bucket=BUCKET, Key=key_of(1))


def _asynchronous_sdk(url: str) -> None:
    import aioboto3

    async def first() -> None:
        async with aioboto3.Session().client("s3", endpoint_url=url) as client:
            await client.get_object_acl(Bucket=BUCKET, Key=key_of(1))

    asyncio.run(first())


def _bare(url: str, authority: str) -> None:
    import uvloop

    from benchmarks.clients.bare import opened

    async def first() -> None:
        async with opened(url, authority, 1) as client:
            await client.object(key_of(1), ("acl",))

    uvloop.run(first())


def first_call(meter: Meter, *, url: str, authority: str, client: str, engine: bool) -> dict[str, Any]:
    """engine: the client is an engine of ours."""
    with meter.measuring():
        if engine:
            _engine(url, client)
        elif client == "bare aiohttp":
            _bare(url, authority)
        else:
            {"boto3": _sdk, "aioboto3": _asynchronous_sdk}[client](url)
    return {}


def command(meter: Meter, *, url: str) -> dict[str, Any]:
    """`auditor audit` as a process of its own, with its run folder in a directory."""
    with tempfile.TemporaryDirectory() as out:
        asked = [sys.executable, "-m", "auditor", "audit", f"s3://{BUCKET}", "--endpoint-url", url, "--out", out]
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ended = subprocess.run(
            [*asked, "--format", "json", "--fail-on", "never"], stdout=subprocess.PIPE, text=True, check=True
        )
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    meter.laps.append(Lap(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    return {"audited": json.loads(ended.stdout)["coverage"]["audited"], "peak": after.ru_maxrss / 1024}
