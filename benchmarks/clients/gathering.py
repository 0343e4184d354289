"""Gather every object's ACL as an audit does, without the rest of an audit."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from auditor.aio.stop import Stop
from auditor.aws.connection import Connection
from auditor.config.settings import Settings
from auditor.model.object import Acl
from auditor.model.target import Target
from auditor.rules import RULES
from auditor.rules.base import make_plan
from auditor.rules.judge import select
from auditor.s3.calls import AUTO_CEILING, Caller, ConcurrencyLimit, first_in_flight
from auditor.s3.engines import DEFAULT_ENGINE, ENGINES
from auditor.s3.engines.base import Engine
from auditor.s3.gather import Gathered, gather
from auditor.s3.listing import pages
from auditor.s3.object_reader import ObjectReader
from auditor.s3.rate import RateLimit
from benchmarks.facts import FACTS
from benchmarks.server.objects import BUCKET


def opened(url: str) -> AbstractAsyncContextManager[Engine]:
    """The default engine."""
    connection = Connection(bucket=BUCKET, region="us-east-1", endpoint_url=url, concurrency=AUTO_CEILING)
    return ENGINES[DEFAULT_ENGINE](connection)


async def gathered(engine: Engine) -> int:
    """The number of ACLs read, at the default rate and concurrency."""
    settings, count = Settings(), 0
    caller = Caller(
        BUCKET,
        rate=RateLimit(settings.max_rate),
        permits=ConcurrencyLimit(AUTO_CEILING, auto=True, first=first_in_flight()),
    )
    caller.permits.assume_open(engine.open_connections)
    plan = make_plan(select(RULES, {}, (), (), "exposure"), FACTS)

    async def sink(batch: list[Gathered]) -> None:
        nonlocal count
        count += sum(item.evidence is not None and isinstance(item.evidence.acl, Acl) for item in batch)

    reader = ObjectReader(engine, caller, plan.ask, settings.algorithms)
    await gather(pages(engine, caller, Target(BUCKET)), reader, caller, Stop(), sink, calls_per_object=1)
    engine.keep_idle(caller.permits.statistics().limit)
    return count
