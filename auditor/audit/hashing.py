"""The hashing within an audit: find the objects without digests, and hash them or leave them to others."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

from auditor.audit.run_context import RunContext
from auditor.hashing.digest.object import hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.limits import CONCURRENCY
from auditor.hashing.outage import patient
from auditor.hashing.status import HashStatusFinder, Routing
from auditor.ledger.base import Ledger
from auditor.s3.engines.base import Engine
from auditor.s3.listing import listed_still
from auditor.s3.paced_reads import PacedReads


def open_fixity(run: RunContext, ledger: Ledger, engine: Engine, stack: AsyncExitStack) -> HashStatusFinder:
    """Return the finder of the state of each object's digests (HashStatusFinder).

    If the run hashes objects itself, the finder hashes those without digests. stack: closes the finder and its hashing
    threads at its end. The run's stop ends the wait for a ledger or S3 that does not answer; a run that does not hash
    itself never waits for one.
    """
    settings, bucket, hasher = run.settings, run.target.bucket, None
    if run.places.queue is None and settings.hash:
        executor, concurrency = stack.enter_context(hash_threads()), min(CONCURRENCY, run.concurrency)
        options = HashOptions.of(bucket, settings, run.stop, executor=executor, concurrency=concurrency)
        ledger = patient(ledger, run.stop)
        hasher = InProcessHasher(PacedReads(engine, run.rate), ledger, settings.algorithms, options)
    routes = settings.batch_over is not None or settings.batch_manifest is not None
    finder = HashStatusFinder(
        bucket,
        ledger,
        settings.algorithms,
        hasher,
        accept_cost=settings.accept_cost,
        routing=Routing(settings.batch_over) if routes else None,
        listed_still=partial(listed_still, engine, run.caller),
    )
    stack.push_async_callback(finder.close)
    return finder
