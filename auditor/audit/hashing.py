"""The hashing within an audit: find the objects without digests, hash them, or leave them to S3 Batch Operations."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from auditor.aio.stop import Stop
from auditor.aws.partition import partition_of
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.hashing.batch.write_jobs import JobOwner, write_batch
from auditor.hashing.digest.object import hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.limits import CONCURRENCY
from auditor.hashing.outage import patient
from auditor.hashing.status import HashStatusFinder, Routing
from auditor.model.object import ObjectVersion
from auditor.model.target import Target
from auditor.runs.paths import run_path
from auditor.runs.reading import RunReader
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


def write_routed(
    places: Resources,
    settings: Settings,
    target: Target,
    run_id: str,
    region: str | None,
    account: str | None,
    *,
    objects: Iterable[ObjectVersion] | None = None,
    **how: Any,
) -> None:
    """Write the manifests and jobs for S3 Batch Operations, for the objects that the run leaves to it.

    They are written into the run folder, or under its path into the place for manifests. A resumed run writes all of
    them again. account: the caller's 12-digit account; None if unknown. objects: those of the manifests to write; None
    for all that the run leaves. how: passed to write_batch(). Blocks.
    """
    if objects is None:
        objects = RunReader(places.store, target.bucket, run_id).routed()
    write_batch(
        places.manifests or places.store,
        run_path(target.bucket, run_id),
        objects,
        bucket=target.bucket,
        run_id=run_id,
        versions=target.versions,
        algorithms=settings.algorithms,
        owner=JobOwner(partition=partition_of(region), account=account, role=settings.batch_role),
        **how,
    )
