"""`auditor hash`: list a target and hash, in this process, whatever the ledger does not know yet."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from auditor.aio.stop import Stop
from auditor.config.resources import connection_to
from auditor.config.settings import Settings
from auditor.hashing.digest.object import CHUNK_SIZE, hash_threads
from auditor.hashing.digest.streams import MOST
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.status import HashStatusFinder
from auditor.ledger.base import Ledger
from auditor.model.object import Ask, Skipped
from auditor.model.plain import plain
from auditor.model.summary import HashingSummary
from auditor.model.target import Target
from auditor.progress import Snapshot
from auditor.runs.tally import Tally
from auditor.s3.calls import Caller, RetryPolicy
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.engines.base import Engine
from auditor.s3.gather import Gathered, gather
from auditor.s3.listing import pages
from auditor.s3.object_reader import ObjectReader
from auditor.s3.open import open_in_its_region
from auditor.s3.rate import RateLimit
from auditor.text import visible

DEFAULT_CONCURRENCY = 16

_LISTING_ONLY = Ask(Skipped("hashing needs no ACL"), Skipped("hashing needs no HEAD"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HashRunSummary:
    """The counts of one pass. complete: the listing reached its end. failed: objects whose hashing failed."""

    target: Target
    complete: bool
    hashing: HashingSummary
    failed: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The value that `auditor hash --format json` prints."""
        value: dict[str, Any] = plain(self)
        return value


class HashRun:
    """One pass over one target; run() gives its counts."""

    def __init__(
        self,
        target: Target,
        settings: Settings,
        ledger: Ledger,
        stop: Stop,
    ) -> None:
        self._target = target
        self._settings = settings
        self._ledger = ledger
        self._stop = stop
        self._concurrency = settings.concurrency or DEFAULT_CONCURRENCY
        self._tally = Tally()
        self._started = time.monotonic()

    async def run(self) -> HashRunSummary:
        """Raises RunError for a failure that ends the run."""
        settings, target = self._settings, self._target
        rate = RateLimit(settings.max_rate)
        # One for the listing, and those of an object that has several.
        connection = connection_to(target.bucket, settings, self._concurrency + (settings.streams or MOST))
        with hash_threads() as executor:
            async with open_in_its_region(settings.engine, connection) as engine:
                hasher = InProcessHasher(
                    target.bucket,
                    engine,
                    self._ledger,
                    settings.algorithms,
                    rate=rate,
                    concurrency=self._concurrency,
                    chunk_size=CHUNK_SIZE,
                    executor=executor,
                    streams=settings.streams,
                    attempts=settings.retry_attempts,
                )
                ended = await self._hash(engine, rate, hasher)
        return HashRunSummary(
            target=target,
            complete=ended,
            hashing=self._tally.hashing_summary(settings.algorithms),
            failed=hasher.failed,
            seconds=round(time.monotonic() - self._started, 3),
        )

    async def _hash(self, engine: Engine, rate: RateLimit, hasher: InProcessHasher) -> bool:
        """List the target and hash what is not known; True when the listing reached its end."""
        settings, target = self._settings, self._target
        caller = Caller(
            target.bucket,
            rate=rate,
            permits=ConcurrencyLimit(self._concurrency),
            retry=RetryPolicy(settings.retry_attempts, settings.retry_seconds),
            max_calls=settings.max_calls,
        )
        fixity = HashStatusFinder(
            target.bucket, self._ledger, settings.algorithms, hasher, accept_cost=settings.accept_cost
        )
        return await gather(
            pages(engine, caller, target),
            ObjectReader(engine, caller, _LISTING_ONLY, settings.algorithms),
            caller,
            self._stop,
            partial(self._record, fixity),
            calls_per_object=0,
            whole_keys=target.versions,
        )

    async def _record(self, fixity: HashStatusFinder, batch: list[Gathered]) -> None:
        read = [item.evidence for item in batch if item.evidence is not None]
        for evidence, looked in zip(read, await fixity.look(read), strict=True):
            if looked is None:
                continue
            self._tally.hash(looked.state)
            if looked.left:
                self._tally.leave(evidence.ref.storage_class, evidence.ref.size)

    def snapshot(self) -> Snapshot:
        """The counts of this moment, for people who wait."""
        counts = self._tally.hashing
        return Snapshot(
            what=visible(self._target.uri),
            objects=sum(counts.values()),
            seconds=time.monotonic() - self._started,
            detail=f"{counts['hashed_now']:,} hashed now, {counts['pending']:,} pending",
        )
