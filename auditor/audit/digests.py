"""Open the hashing within an audit, if the audit has a ledger."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from auditor.aio.stop import Stop
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.hashing.queue.send import Dispatcher
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine
from auditor.s3.rate import RateLimit

if TYPE_CHECKING:
    from auditor.hashing.status import HashStatusFinder


def finder_of(
    bucket: str,
    settings: Settings,
    places: Resources,
    engine: Engine,
    stack: AsyncExitStack,
    *,
    caller: Caller,
    rate: RateLimit,
    concurrency: int,
    stop: Stop,
) -> HashStatusFinder | None:
    """Return the finder of the state of each object's digests; None without a ledger.

    The parameters are those of auditor.audit.hashing.open_fixity.
    """
    if places.ledger is None:
        return None
    from auditor.audit.hashing import open_fixity  # an audit without a ledger does without thirty modules

    return open_fixity(
        bucket, settings, places, engine, stack, caller=caller, rate=rate, concurrency=concurrency, stop=stop
    )


def dispatcher_of(bucket: str, run_id: str, settings: Settings, places: Resources) -> Dispatcher | None:
    """Return the sender to the hashing queue; None if the audit has no ledger or no queue."""
    if places.ledger is None or places.queue is None:
        return None
    return Dispatcher(places.queue, run_id, bucket, settings.algorithms)
