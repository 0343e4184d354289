"""Run the demo's steps (load, audit, compare, hash, verify), and print each one's result when it ends."""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from functools import partial
from typing import Final

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.aws.connection import Connection
from auditor.cli import signals
from auditor.cli.demo import report
from auditor.cli.demo.bucket import BUCKET, keys_of, load
from auditor.cli.demo.compare import DemoResults, PlantedComparison, compare, hashing_of
from auditor.cli.demo.damage import DAMAGED, Differing, VerifiedDamage, range_of
from auditor.cli.demo.files import Choice, choose
from auditor.cli.demo.plants import METADATA, PLANTED
from auditor.cli.demo.server import REGION, Clients, Import, demo_aws, make_queue
from auditor.cli.progress import make_progress, showing, shown
from auditor.config.resources import Resources, open_resources
from auditor.config.settings import Settings
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.loop import Pace, Worker, open_processor
from auditor.hashing.worker.options import WorkerOptions
from auditor.ledger.dynamodb.ledger import create_table
from auditor.model.bucket import Semantics
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.progress import Snapshot
from auditor.reports.highlights import Highlights
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine
from auditor.verify.run import Verification

NAME: Final = "auditor-demo"
"""The name of the queue and of the ledger's table."""
IN_HAND: Final = 16
"""Largest number of objects that the worker hashes at once."""
QUIET: Final = Pace(messages=4, idle=1.0, poll=1)


def run_tour(source: str | None, engine: str, out: str, *, load_module: Import = importlib.import_module) -> list[str]:
    """Run the demo, and return a sentence for each unexpected result; [] if all is as expected.

    source: a directory of files to upload; None: Python's own sources. engine: name of the engine for S3. out: place of
    the run folders. load_module: imports a module of moto by its name. The steps' results go to stdout, the progress to
    stderr.

    Raises UsageError for a directory without files, for an `out` that is not a directory, and if moto is not installed.
    """
    started = time.monotonic()
    choice = choose(source)
    with open_store(out) as store:
        store.check_writable()  # before the work, not after it
    with demo_aws(BUCKET, load_module) as clients:
        _show(report.opening(engine))
        objects = _load(clients, choice)
        settings = Settings(
            engine=engine,
            out=out,
            ledger=f"dynamodb:{NAME}",
            queue=make_queue(clients.sqs, NAME),
            region=REGION,
            semantics=Semantics.AWS,
            rules={"M01": {"required": [METADATA]}},
        )
        seen = signals.run(_Tour(settings, range_of(keys_of(choice)), partial(_damage, clients)).run())
    differences = seen.differences(objects)
    _show(report.closing(seen, time.monotonic() - started, right=not differences))
    return differences


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _damage(clients: Clients) -> None:
    for damage in DAMAGED:
        if damage.change is None:
            clients.s3.delete_object(Bucket=BUCKET, Key=damage.key)
        else:
            clients.rot(damage.key, damage.change)


def _load(clients: Clients, choice: Choice) -> int:
    started = time.monotonic()
    with closing(make_progress()) as progress:

        def show(done: int, total: int) -> None:
            seconds, end = time.monotonic() - started, done == total
            progress.update(Snapshot(what="loading", objects=done, expected=total, seconds=seconds, done=end))

        loaded = load(clients.s3, choice, show)
    _show(report.loading(choice, loaded, len(PLANTED), time.monotonic() - started))
    return loaded.objects


class Named:
    """Names each exposed object of an audit as soon as it is known. show: prints a text."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._told = 0

    def has_news(self, shown: Highlights) -> bool:
        return len(shown.exposed) > self._told

    def tell(self, shown: Highlights) -> None:
        new, self._told = shown.exposed[self._told :], len(shown.exposed)
        self._show(report.exposed(new, begins=len(new) == self._told))


class _Tour:
    """The steps of the demo. verified: the range of keys that the last step verifies. damage: a function that corrupts
    or deletes some of these objects before that step.
    """

    def __init__(self, settings: Settings, verified: Target, damage: Callable[[], None]) -> None:
        self._settings = settings
        self._verified = verified
        self._damage = damage
        self._target = Target(BUCKET)

    async def run(self) -> DemoResults:
        await create_table(NAME, region=REGION)
        async with open_resources(self._settings, [self._target]) as places:
            audited = await self._audit(places, Named(_show))
            _show(report.audited(audited))
            comparison = await asyncio.to_thread(_compare, places.store, audited.run)
            _show(report.comparing(comparison))
            work = await self._work(audited)
            await asyncio.to_thread(self._damage)
            verified = await self._verify()
            _show(report.verifying(verified))
        return DemoResults(audited, comparison, work, verified)

    async def _audit(self, places: Resources, named: Named) -> Summary:
        audit = Audit(self._target, self._settings, places, Stop())
        with closing(make_progress()) as progress:

            def count() -> Snapshot:
                if named.has_news(audit.shown):
                    progress.close()  # the bar and the names would share a line of the terminal
                    named.tell(audit.shown)
                return audit.snapshot()

            async with showing(progress, count):
                return await audit.run()

    async def _verify(self) -> VerifiedDamage:
        differing = Differing()
        settings = replace(
            self._settings, grace=0.0
        )  # the objects were recorded a minute ago, and are verified all the same
        async with open_resources(settings, [self._verified], hashing=False) as resources:
            verification = Verification(self._verified, settings, resources, Stop(), combined=differing)
            async with shown(verification.snapshot, ends=True):
                summary = await verification.run()
        return VerifiedDamage(summary, frozenset(differing.lines))

    async def _work(self, audited: Summary) -> Counts:
        started = time.monotonic()
        hashing = WorkerOptions(algorithms=self._settings.algorithms, concurrency=IN_HAND)
        settings = replace(self._settings, region=REGION)
        async with open_processor(settings, hashing, self._open_engine) as processor:
            worker, queued = Worker(processor, QUIET), hashing_of(audited).queued

            def count() -> Snapshot:
                seconds = time.monotonic() - started
                return Snapshot(what="hashing", objects=worker.counts.hashed, expected=queued, seconds=seconds)

            async with shown(count):
                counts = await worker.run()
        _show(report.hashing(audited, counts, time.monotonic() - started))
        return counts

    def _open_engine(self, bucket: str) -> AbstractAsyncContextManager[Engine]:
        return ENGINES[self._settings.engine](Connection(bucket=bucket, region=REGION, concurrency=IN_HAND))


def _compare(store: Store, run: str) -> PlantedComparison:
    reader = RunReader(store, BUCKET, run)
    return compare(PLANTED, reader.findings(), reader.objects())
