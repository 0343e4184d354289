"""Run `auditor hash`: list a target, and hash in this process the objects that have no digest in the ledger."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Final

from msgspec import Struct

from auditor.aio.ordered import next_page
from auditor.aio.stop import Stop
from auditor.config.resources import OpenedBucket, open_bucket
from auditor.config.settings import Settings
from auditor.hashing.digest.object import hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.streams import connections
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.limits import CONCURRENCY
from auditor.hashing.outage import patient
from auditor.hashing.status import AskHead, HashStatus, HashStatusFinder
from auditor.ledger.base import Ledger
from auditor.model.dates import now_in_utc
from auditor.model.exception import CONTRADICTED, accepts_object, holes_of
from auditor.model.object import Ask, Evidence, ObjectRef, Skipped
from auditor.model.summary import HashingSummary, UnreadCount
from auditor.model.target import NOTHING_LISTED, Target
from auditor.progress import Snapshot
from auditor.reports.phrases import read_words
from auditor.reports.summary import hashing_of
from auditor.runs.tally import REASONS, Tally
from auditor.s3.listing import Listed, listed_still, pages, within_limit
from auditor.s3.object_reader import ObjectReader
from auditor.s3.paced_reads import PacedReads
from auditor.text import counted, tallied, visible

BATCH: Final = 200
"""Number of objects that are looked up in the ledger at once."""
_NOT_READ: Final = Skipped("hashing reads neither ACL nor HEAD")
_HASHED: Final = frozenset({"known", "hashed_now"})


class HashRunSummary(Struct, frozen=True, kw_only=True):
    """The counts of one run of `auditor hash`."""

    target: Target
    complete: bool
    """True if the listing was read to its end."""
    hashing: HashingSummary
    """Number of objects by the state of their digests."""
    failed: int
    """Number of objects that could not be read, or whose digest differs from S3's checksum or the ledger's digest;
    `hashing.failed` has their codes, and those of the replaced objects."""
    replaced: int = 0
    """Number of objects that were overwritten after the listing. Neither the old nor the new version was hashed."""
    vanished: int = 0
    """Number of objects that were deleted after the listing. They are not counted in `hashing`."""
    not_hashed: tuple[UnreadCount, ...] = ()
    """Number of objects without a digest, by reason, the largest number first."""
    healed: int = 0
    """Number of damaged rows of the ledger that were written anew, because the keys' histories had them."""
    accepted: int = 0
    """Number of objects without a digest that auditor.toml accepts."""
    holes: tuple[str, ...] = ()
    """The holes of the run, in words: objects without a digest that auditor.toml does not accept, a listing that was
    not read to its end, or a prefix under which nothing is listed."""
    seconds: float

    @property
    def exit_code(self) -> int:
        """The command's exit code: 4 if there is a hole, else 0."""
        return 4 if self.holes else 0


class HashRun:
    """One run of `auditor hash` over one target. Call run() once."""

    def __init__(self, target: Target, settings: Settings, ledger: Ledger, stop: Stop) -> None:
        self._target = target
        self._settings = settings
        self._ledger = patient(ledger, stop)
        self._stop = stop
        self._concurrency = settings.concurrency or CONCURRENCY
        self._tally = Tally()
        self._open: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._holes = holes_of(settings.exceptions, target.bucket, now_in_utc()[:10])
        self._reads: PacedReads | None = None
        self._vanished = 0
        self._markers = 0
        self._started = time.monotonic()

    async def run(self) -> HashRunSummary:
        """Hash the target's objects, and return the counts. Raises RunError for a failure that ends the whole run."""
        settings, target = self._settings, self._target
        sockets = connections(self._concurrency, settings.streams)
        opening = open_bucket(target.bucket, settings, concurrency=self._concurrency, connections=sockets)
        with hash_threads() as executor:
            async with opening as bucket:
                options = HashOptions.of(
                    target.bucket, settings, self._stop, executor=executor, concurrency=self._concurrency
                )
                reads = self._reads = PacedReads(bucket.engine, bucket.rate)
                hasher = InProcessHasher(reads, self._ledger, settings.algorithms, options)
                finder = HashStatusFinder(
                    target.bucket,
                    self._ledger,
                    settings.algorithms,
                    hasher,
                    accept_cost=settings.accept_cost,
                    ask_head=self._asker(bucket),
                    listed_still=partial(listed_still, bucket.engine, bucket.caller),
                )
                try:
                    listed = within_limit(pages(bucket.engine, bucket.caller, target), self._stop)
                    async with aclosing(listed) as listing:
                        ended = await self._hash_listed(listing, finder)
                finally:
                    await finder.close()
        return self._summary(ended, finder.healed)

    def _asker(self, bucket: OpenedBucket) -> AskHead:
        reader = ObjectReader(bucket.engine, bucket.caller, Ask(acl=_NOT_READ), self._settings.algorithms)
        permits = asyncio.Semaphore(self._concurrency)

        async def ask(ref: ObjectRef) -> Evidence:
            async with permits:
                return await reader.read(ref)

        return ask

    def _summary(self, ended: bool, healed: int) -> HashRunSummary:
        codes = self._open + self._accepted
        holes = [] if ended else ["the listing did not reach its end"]
        listed = sum(self._tally.hashing.values()) + self._vanished + self._markers
        if ended and self._target.lists_nothing(listed) and not self._settings.allow_empty:
            holes.append(NOTHING_LISTED)
        if self._open:
            holes.append(f"{counted(self._open.total(), 'object')} not hashed ({tallied(self._open)})")
        return HashRunSummary(
            target=self._target,
            complete=ended,
            hashing=hashing_of(self._tally, self._settings.algorithms),
            failed=sum(self._tally.failed.values()) - codes["Overwritten"],
            replaced=codes["Overwritten"],
            vanished=self._vanished,
            not_hashed=tuple(UnreadCount("GetObject", code, count) for code, count in codes.most_common()),
            healed=healed,
            accepted=self._accepted.total(),
            holes=tuple(holes),
            seconds=round(time.monotonic() - self._started, 3),
        )

    async def _hash_listed(self, listing: AsyncGenerator[list[Listed], None], finder: HashStatusFinder) -> bool:
        """Hash the listed objects. Return True if the listing was read to its end, False after a stop.

        A stop takes effect between two keys, never between two versions of one key.
        """
        last: str | None = None
        while (page := await next_page(listing, self._stop, whole_keys=self._target.versions)) is not None:
            batch: list[Evidence] = []
            for step in page:
                if self._stop and step.key != last:
                    await self._hash_batch(batch, finder)
                    return False
                last = step.key
                self._markers += step.delete_markers
                if step.ref is not None:
                    batch.append(Evidence(step.ref, _NOT_READ, _NOT_READ))
                if len(batch) == BATCH:
                    await self._hash_batch(batch, finder)
                    batch = []
            await self._hash_batch(batch, finder)
        return not self._stop

    async def _hash_batch(self, batch: list[Evidence], finder: HashStatusFinder) -> None:
        for evidence, status in zip(batch, await finder.find(batch), strict=True):
            if status is None or (status.code == "Vanished" and not status.failure):
                self._vanished += 1
            else:
                self._count(evidence.ref, status)

    def _count(self, ref: ObjectRef, status: HashStatus) -> None:
        self._tally.hash(status.state)
        if status.left_for_cost:
            self._tally.leave(ref.storage_class, ref.size)
        if status.state in _HASHED:
            return
        code = status.code or "other"
        if code not in self._open and len(self._open) >= REASONS:
            code = "other"
        accepted = code not in CONTRADICTED and accepts_object(self._holes, ref.key, [("GetObject", code)])
        if status.failure:
            self._tally.fail(status.failure, accepted=accepted)
        (self._accepted if accepted else self._open)[code] += 1

    def snapshot(self) -> Snapshot:
        """Return the present counts, for the progress line on the terminal."""
        counts, seconds = self._tally.hashing, time.monotonic() - self._started
        states = (f"{counts['hashed_now']:,} hashed now", f"{counts['pending']:,} pending")
        return Snapshot(
            what=visible(self._target.uri),
            objects=sum(counts.values()),
            seconds=seconds,
            detail=", ".join([*read_words(self._reads.bytes if self._reads else 0, seconds), *states]),
        )
