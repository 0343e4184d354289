"""Hash one object: with our hasher, and in the article's plain loop."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from benchmarks.meter import MIB, Meter, peak_memory
from benchmarks.server.objects import BUCKET, SIZED

ALGORITHM: Final = "sha1"


def ours(
    meter: Meter, *, url: str, size: int, chunk: int, times: int = 1, streams: int | None = None
) -> dict[str, Any]:
    """Our hasher with the default engine, as the worker uses it. chunk: for the plain loop only. times: laps over the
    object, after a lap over one byte. streams: None for auto. Result `idle`: peak MiB before the object.
    """
    from auditor.aio import loop as loops
    from auditor.aio.budget import InFlightBudget
    from auditor.aws.connection import Connection
    from auditor.hashing.digest.object import hash_object, hash_threads
    from auditor.hashing.digest.options import HashOptions
    from auditor.hashing.digest.result import Hashed
    from auditor.hashing.digest.streams import connections
    from auditor.hashing.limits import BYTES_IN_FLIGHT, CONCURRENCY
    from auditor.hashing.queue.message import HashTask
    from auditor.s3.engines import DEFAULT_ENGINE, ENGINES

    idle = 0.0

    async def measure() -> str:
        nonlocal idle
        most = connections(CONCURRENCY, streams)
        connection = Connection(bucket=BUCKET, region="us-east-1", endpoint_url=url, concurrency=most)
        async with ENGINES[DEFAULT_ENGINE](connection) as engine:
            with hash_threads() as threads:
                for lap, length in enumerate((1, *[size] * times)):
                    if lap < 2:
                        idle = peak_memory()
                    task = HashTask(f"{SIZED}{length}", None, "5" * 32, length)
                    with meter.measuring():
                        found = await hash_object(
                            engine,
                            task,
                            (ALGORITHM,),
                            HashOptions(streams=streams, executor=threads, memory=InFlightBudget(1, BYTES_IN_FLIGHT)),
                        )
        if not isinstance(found, Hashed):
            raise RuntimeError(f"not hashed: {found}")
        return found.digests[ALGORITHM]

    return {"digest": loops.run(measure()), "idle": idle}


def article(meter: Meter, *, url: str, size: int, chunk: int, times: int = 1) -> dict[str, Any]:
    """The article's loop: get_object, then read a chunk and update the hash until the body ends."""
    import boto3

    client = boto3.client("s3", endpoint_url=url)
    for length in (1, *[size] * times):
        with meter.measuring():
            body = client.get_object(Bucket=BUCKET, Key=f"{SIZED}{length}")["Body"]
            digest = hashlib.new(ALGORITHM)
            while piece := body.read(chunk * MIB):
                digest.update(piece)
    return {"digest": digest.hexdigest()}
