"""How a bucket is reached, and an engine opened in its own region for those who know nothing but its name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from auditor import bucketfacts
from auditor.calls import Caller
from auditor.engines import ENGINES
from auditor.engines.interface import Connection, Engine
from auditor.pace import Permits, Rate
from auditor.settings import Settings


def connection_to(bucket: str, settings: Settings, concurrency: int) -> Connection:
    """How the settings say that a bucket is to be reached."""
    return Connection(
        bucket=bucket,
        region=settings.region,
        endpoint_url=settings.endpoint_url,
        profile=settings.profile,
        concurrency=concurrency,
        expected_owner=settings.expected_owner,
        requester_pays=settings.requester_pays,
    )


@asynccontextmanager
async def open_at_home(engine: str, connection: Connection) -> AsyncIterator[Engine]:
    """engine: a name of ENGINES. Raises BucketError where there is no such bucket, or not in connection.region."""
    caller = Caller(connection.bucket, rate=Rate(None), permits=Permits(1))
    with bucketfacts.open_reader(connection, caller) as reader:
        region = await reader.region(connection.region)
    if isinstance(region, str):
        connection = replace(connection, region=region)
    async with ENGINES[engine](connection) as opened:
        yield opened
