"""Every object's ACL, gathered as an audit gathers it, by itself."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from auditor.calls import Caller
from auditor.engines import DEFAULT_ENGINE, ENGINES
from auditor.engines.interface import Connection, Engine
from auditor.gather import Gathered, Reader, gather
from auditor.listing import pages
from auditor.models import Acl
from auditor.pace import AUTO_CEILING, Permits, Rate, first_in_flight
from auditor.plan import make_plan, select
from auditor.rules import RULES
from auditor.settings import Settings
from auditor.stop import Stop
from auditor.target import Target
from benchmarks.facts import FACTS
from benchmarks.server.objects import BUCKET


def opened(url: str) -> AbstractAsyncContextManager[Engine]:
    """The default engine."""
    connection = Connection(bucket=BUCKET, region="us-east-1", endpoint_url=url, concurrency=AUTO_CEILING)
    return ENGINES[DEFAULT_ENGINE](connection)


async def gathered(engine: Engine) -> int:
    """How many ACLs were read, at the default pace and concurrency."""
    settings, count = Settings(), 0
    caller = Caller(
        BUCKET, rate=Rate(settings.max_rate), permits=Permits(AUTO_CEILING, auto=True, first=first_in_flight())
    )
    caller.permits.begin_with(engine.open_connections)
    plan = make_plan(select(RULES, {}, (), (), "exposure"), FACTS)

    async def sink(batch: list[Gathered]) -> None:
        nonlocal count
        count += sum(item.evidence is not None and isinstance(item.evidence.acl, Acl) for item in batch)

    reader = Reader(engine, caller, plan, settings.algorithms)
    await gather(pages(engine, caller, Target(BUCKET)), reader, caller, Stop(), sink, calls_per_object=1)
    engine.keep(caller.permits.statistics().limit)
    return count
