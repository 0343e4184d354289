"""The hashing within an audit: find the objects without digests, and hash them or leave them to others."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

from auditor.aio.stop import Stop
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.hashing.digest.object import hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.limits import CONCURRENCY
from auditor.hashing.outage import patient
from auditor.hashing.status import HashStatusFinder, Routing
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine
from auditor.s3.listing import listed_still
from auditor.s3.paced_reads import PacedReads
from auditor.s3.rate import RateLimit


def open_fixity(
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
    """Return the finder of the state of each object's digests (HashStatusFinder); None if the run has no ledger.

    If the run hashes objects itself, the finder hashes those without digests. places: the run's ledger, queue and
    stores. stack: closes the finder and its hashing threads at its end. caller: lists an object again that could not be
    read. concurrency: largest number of objects in flight in the run. stop: ends the wait for a ledger or S3 that does
    not answer; a run that does not hash itself never waits for one.
    """
    ledger = places.ledger
    if ledger is None:
        return None
    hasher: InProcessHasher | None = None
    if places.queue is None and settings.hash:
        executor = stack.enter_context(hash_threads())
        options = HashOptions.of(bucket, settings, stop, executor=executor, concurrency=min(CONCURRENCY, concurrency))
        ledger = patient(ledger, stop)
        hasher = InProcessHasher(PacedReads(engine, rate), ledger, settings.algorithms, options)
    routes = settings.batch_over is not None or settings.batch_manifest is not None
    finder = HashStatusFinder(
        bucket,
        ledger,
        settings.algorithms,
        hasher,
        accept_cost=settings.accept_cost,
        routing=Routing(settings.batch_over) if routes else None,
        listed_still=partial(listed_still, engine, caller),
    )
    stack.push_async_callback(finder.close)
    return finder
