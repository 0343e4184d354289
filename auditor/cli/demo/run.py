"""Run the demo's steps (load, audit, hash, verify), and print each one's result when it ends."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.aws.connection import Connection
from auditor.cli import signals
from auditor.cli.demo import report
from auditor.cli.demo.bucket import BUCKET, Choice, choose, load
from auditor.cli.demo.check import DAMAGED, DemoResults, compare, range_of
from auditor.cli.demo.plants import METADATA
from auditor.cli.demo.server import REGION, Clients, demo_aws, make_queue
from auditor.cli.output import print_text
from auditor.cli.progress import counting, make_progress, shown
from auditor.config.resources import open_resources
from auditor.config.settings import Settings
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.loop import Pace, Worker, open_processor
from auditor.hashing.worker.options import WorkerOptions
from auditor.ledger.dynamodb.ledger import create_table
from auditor.model.bucket import Semantics
from auditor.model.digest import VerifyOutcome
from auditor.model.target import Target
from auditor.progress import Snapshot
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from auditor.s3.engines import ENGINES
from auditor.verify.outcome import SIGNS
from auditor.verify.run import Verification
from auditor.verify.summary import VerifySummary

NAME: Final = "auditor-demo"
"""The name of the queue and of the ledger's table."""
IN_HAND: Final = 16
"""Largest number of objects that the worker hashes at once."""
QUIET: Final = Pace(messages=4, idle=1.0, poll=1)


def run_tour(source: str | None, engine: str, out: str) -> list[str]:
    """Run the demo, and return a sentence for each unexpected result; [] if all is as expected.

    source: a directory of files to upload; None: Python's own sources. engine: name of the engine for S3. out: place of
    the run folders. The steps' results go to stdout, the progress to stderr.

    Raises UsageError for a directory without files, for an `out` that is not a directory, and if moto is not installed.
    """
    started = time.monotonic()
    choice = choose(source)
    with open_store(out) as store:
        store.check_writable()  # before the work, not after it
    with demo_aws(BUCKET) as clients:
        print_text(report.opening(engine))
        _load(clients, choice)
        settings = Settings(
            engine=engine,
            out=out,
            ledger=f"dynamodb:{NAME}",
            queue=make_queue(clients.sqs, NAME),
            region=REGION,
            semantics=Semantics.AWS,
            rules={"M01": {"required": [METADATA]}},
            grace=0.0,  # the objects were recorded a minute ago, and are verified all the same
        )
        seen = signals.run(_steps(clients, settings, choice.keys))
    differences = seen.differences()
    print_text(report.closing(seen, time.monotonic() - started, right=not differences))
    return differences


def _load(clients: Clients, choice: Choice) -> None:
    started = time.monotonic()
    with closing(make_progress()) as progress:

        def show(done: int, total: int) -> None:
            seconds, end = time.monotonic() - started, done == total
            progress.update(Snapshot(what="loading", objects=done, expected=total, seconds=seconds, done=end))

        size = load(clients.s3, choice, show)
    print_text(report.loading(choice, size, time.monotonic() - started))


async def _steps(clients: Clients, settings: Settings, keys: Sequence[str]) -> DemoResults:
    """Audit, hash and verify. keys: of the uploaded objects."""
    target, objects = Target(BUCKET), len(keys)
    await create_table(NAME, region=REGION)
    async with open_resources(settings, [target]) as places:
        audit = Audit(target, settings, places, Stop())
        async with shown(audit.snapshot, ends=True):
            audited = await audit.run()
        reader = RunReader(places.store, BUCKET, audited.run)
        comparison = await asyncio.to_thread(lambda: compare(reader.findings(), reader.objects()))
        print_text(report.audited(audited, comparison))
        started = time.monotonic()
        work = await _hash(settings, objects)
        print_text(report.hashing(work, time.monotonic() - started))
    await asyncio.to_thread(_damage, clients)
    verified, lines = await _verify(settings, range_of(keys))
    print_text(report.verifying(verified, lines))
    return DemoResults(objects, audited, comparison, work, verified, lines)


async def _hash(settings: Settings, objects: int) -> Counts:
    """Hash the queued objects, and return the worker's counts."""
    hashing = WorkerOptions(algorithms=settings.algorithms, concurrency=IN_HAND)
    connection = Connection(bucket=BUCKET, region=REGION, concurrency=IN_HAND)
    async with open_processor(settings, hashing, lambda _: ENGINES[settings.engine](connection)) as processor:
        worker = Worker(processor, QUIET)
        count = counting("hashing", lambda: worker.counts.hashed)
        async with shown(lambda: replace(count(), expected=objects)):
            return await worker.run()


def _damage(clients: Clients) -> None:
    for damage in DAMAGED:
        if damage.change is None:
            clients.s3.delete_object(Bucket=BUCKET, Key=damage.key)
        else:
            clients.rot(BUCKET, damage.key, damage.change)


async def _verify(settings: Settings, part: Target) -> tuple[VerifySummary, frozenset[str]]:
    """Verify a range of keys, and return the lines of the objects that do not match, too."""
    combined = io.StringIO()
    async with open_resources(settings, [part], hashing=False) as resources:
        verification = Verification(part, settings, resources, Stop(), combined=combined)
        async with shown(verification.snapshot, ends=True):
            summary = await verification.run()
    match = SIGNS[VerifyOutcome.MATCH]
    return summary, frozenset(line for line in combined.getvalue().splitlines() if not line.startswith(match))
