"""Find a bucket's region, and open an engine in that region."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from auditor.aws.connection import Connection
from auditor.model.bucket import Semantics
from auditor.model.object import Skipped, Unread
from auditor.s3.bucket import open_reader
from auditor.s3.calls import Caller, RetryPolicy
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.engines import ASKING, open_engine
from auditor.s3.engines.base import Engine, EngineChoice, OpenEngine
from auditor.s3.engines.pool import EnginePool
from auditor.s3.rate import RateLimit


@asynccontextmanager
async def open_in_its_region(
    engine: str, connection: Connection, retry: RetryPolicy | None = None
) -> AsyncIterator[Engine]:
    """Open an engine in the bucket's region.

    engine: name of the engine. retry: limits the retries of the call that asks for the region. Raises BucketError if
    the bucket does not exist, or is not in connection.region.
    """
    caller = Caller(connection.bucket, rate=RateLimit(None), permits=ConcurrencyLimit(1), retry=retry)
    async with EnginePool(open_engine) as pool:
        connection, _, _ = await find_region(connection, caller, asking(engine, pool.lend))
        async with pool.lend((engine, connection)) as opened:
            yield opened


def asking(engine: str, engines: OpenEngine[EngineChoice]) -> OpenEngine[Connection] | None:
    """Return a function that opens the engine to read the bucket's settings; None if the engine leaves them to the SDK.

    engine: name of the engine. engines: opens an engine by its name and connection.
    """
    return (lambda connection: engines((engine, connection))) if engine in ASKING else None


async def find_region(
    connection: Connection, caller: Caller, engines: OpenEngine[Connection] | None = None
) -> tuple[Connection, str | Unread | Skipped, Semantics]:
    """Return the connection with the bucket's region, the region, and the kind of server. If the region is unknown, the
    connection is returned unchanged.

    engines: opens the engine that asks for the region; None to ask by the SDK. Raises BucketError if the bucket does
    not exist, or is not in connection.region.
    """
    async with open_reader(connection, caller, engines) as reader:
        region = await reader.region(connection.region)
    found = replace(connection, region=region) if isinstance(region, str) else connection
    return found, region, reader.semantics
