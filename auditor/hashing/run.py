"""`auditor hash`: list a target and hash, in this process, the objects that the ledger does not know."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from auditor.aio.ordered import next_page
from auditor.aio.stop import Stop
from auditor.config.resources import open_bucket
from auditor.config.settings import Settings
from auditor.hashing.digest.object import hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.streams import connections
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.limits import CONCURRENCY
from auditor.hashing.status import HashStatusFinder
from auditor.ledger.base import Ledger
from auditor.model.json_text import plain
from auditor.model.object import Evidence, Skipped
from auditor.model.summary import HashingSummary
from auditor.model.target import Target
from auditor.progress import Snapshot
from auditor.runs.tally import Tally
from auditor.s3.listing import Listed, pages, within_limit
from auditor.s3.paced_reads import PacedReads
from auditor.text import visible

BATCH: Final = 200
"""Number of objects in one look-up in the ledger."""
_NOT_READ: Final = Skipped("hashing reads neither ACL nor HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class HashRunSummary:
    """The counts of one run of `auditor hash`."""

    target: Target
    complete: bool
    """True if the listing reached its end."""
    hashing: HashingSummary
    """Number of objects in each state."""
    failed: int
    """Number of objects whose hashing failed."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the value that `auditor hash --format json` prints."""
        return dict(plain(self))


class HashRun:
    """One run of `auditor hash` over one target. Call run() once."""

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
        self._concurrency = settings.concurrency or CONCURRENCY
        self._tally = Tally()
        self._started = time.monotonic()

    async def run(self) -> HashRunSummary:
        """Hash the target's objects and return the counts. Raise RunError for a failure that ends the run."""
        settings, target = self._settings, self._target
        sockets = connections(self._concurrency, settings.streams)
        opening = open_bucket(target.bucket, settings, concurrency=self._concurrency, connections=sockets)
        with hash_threads() as executor:
            async with opening as bucket:
                options = HashOptions.of(target.bucket, settings, executor=executor, concurrency=self._concurrency)
                reads = PacedReads(bucket.engine, bucket.rate)
                hasher = InProcessHasher(reads, self._ledger, settings.algorithms, options)
                finder = HashStatusFinder(
                    target.bucket, self._ledger, settings.algorithms, hasher, accept_cost=settings.accept_cost
                )
                async with aclosing(within_limit(pages(bucket.engine, bucket.caller, target), self._stop)) as listing:
                    ended = await self._hash_listed(listing, finder)
        return HashRunSummary(
            target=target,
            complete=ended,
            hashing=self._tally.hashing_summary(settings.algorithms),
            failed=hasher.failed,
            seconds=round(time.monotonic() - self._started, 3),
        )

    async def _hash_listed(self, listing: AsyncGenerator[list[Listed], None], finder: HashStatusFinder) -> bool:
        """Hash the listed objects. Return True if the listing reached its end. A stop takes effect between two keys,
        never between two versions of one key.
        """
        last: str | None = None
        while (page := await next_page(listing, self._stop, whole_keys=self._target.versions)) is not None:
            batch: list[Evidence] = []
            for step in page:
                if self._stop and step.key != last:
                    await self._hash_batch(batch, finder)
                    return False
                last = step.key
                if step.ref is not None:
                    batch.append(Evidence(step.ref, _NOT_READ, _NOT_READ))
                if len(batch) == BATCH:
                    await self._hash_batch(batch, finder)
                    batch = []
            await self._hash_batch(batch, finder)
        return not self._stop

    async def _hash_batch(self, batch: list[Evidence], finder: HashStatusFinder) -> None:
        for evidence, status in zip(batch, await finder.find(batch), strict=True):
            if status is None:
                continue
            self._tally.hash(status.state)
            if status.left_for_cost:
                self._tally.leave(evidence.ref.storage_class, evidence.ref.size)

    def snapshot(self) -> Snapshot:
        """Return the counts of this moment, for the progress line."""
        counts = self._tally.hashing
        return Snapshot(
            what=visible(self._target.uri),
            objects=sum(counts.values()),
            seconds=time.monotonic() - self._started,
            detail=f"{counts['hashed_now']:,} hashed now, {counts['pending']:,} pending",
        )
