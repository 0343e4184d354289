"""Find a bucket's region, and open an engine in that region."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from auditor.aws.connection import Connection
from auditor.model.object import Skipped, Unread
from auditor.s3.bucket import open_reader
from auditor.s3.calls import Caller
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine
from auditor.s3.rate import RateLimit


@asynccontextmanager
async def open_in_its_region(engine: str, connection: Connection) -> AsyncIterator[Engine]:
    """Open an engine in the bucket's region. engine: a name in ENGINES.

    Raises BucketError if the bucket does not exist, or is not in connection.region.
    """
    caller = Caller(connection.bucket, rate=RateLimit(None), permits=ConcurrencyLimit(1))
    connection, _ = await find_region(connection, caller)
    async with ENGINES[engine](connection) as opened:
        yield opened


async def find_region(connection: Connection, caller: Caller) -> tuple[Connection, str | Unread | Skipped]:
    """Return the connection with the bucket's region, and the region. Without a region the connection is unchanged.

    Raises BucketError if the bucket does not exist, or is not in connection.region.
    """
    with open_reader(connection, caller) as reader:
        region = await reader.region(connection.region)
    return replace(connection, region=region) if isinstance(region, str) else connection, region
