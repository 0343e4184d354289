"""Estimate an audit: list a target, and count the calls that the audit would send by the plan that it would make."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from auditor.aio.ordered import next_page, one_ahead
from auditor.aio.stop import Stop
from auditor.audit.ask_bucket import open_asked
from auditor.audit.judging_configuration import judge_of, rules_of
from auditor.audit.limits import permits_of
from auditor.audit.sources.last_run import LastRunFacts, reused_groups
from auditor.audit.sources.walk import Listing, ObjectWalk, StepSource
from auditor.config.resources import caller_of
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.ledger.base import Ledger
from auditor.model.dates import seconds_in_utc
from auditor.model.object import Ask, ObjectRef
from auditor.model.reuse import NO_FACTS
from auditor.model.target import Target
from auditor.offline.estimate_report import ClassEstimate, Estimate, EstimatedCalls, HashingEstimate, KeptEstimate
from auditor.progress import Snapshot
from auditor.rules.base import judges_values, make_plan
from auditor.runs.reading import RunReader
from auditor.s3.checksums import promised
from auditor.s3.gather import stand_in
from auditor.s3.listing import Listed, within_limit
from auditor.s3.object_reader import ObjectReader
from auditor.s3.prices import Prices, in_dollars, prices_with
from auditor.s3.rate import RateLimit
from auditor.s3.storage_class import ARCHIVED_CLASSES, charged
from auditor.text import counted, visible

CALL_SECONDS: Final = 0.03
"""Seconds that a call takes where only the number of calls in flight limits the pace: an assumption."""
_BATCH: Final = 200
"""Number of objects that are looked up in the ledger at once."""


class EstimateRun:
    """Estimates the audit of one target. Call run() once. It sends LIST calls, and the questions about the bucket.

    ledger: where digests are looked up; None if the audit has none. stop: ends the listing; what was counted by then is
    the estimate. last: the target's last complete run, whose facts `keep` takes; None if there is none. clock: returns
    the present time, in seconds since 1970.
    """

    def __init__(
        self,
        target: Target,
        settings: Settings,
        ledger: Ledger | None,
        stop: Stop,
        *,
        last: RunReader | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._target = target
        self._last = last
        self._clock = clock
        self._settings = settings
        self._reader = None if ledger is None else ledger.in_order(target.bucket)
        self._stop = stop
        self._prices = prices_with(settings.prices)
        self._ceiling, self._permits = permits_of(settings)
        self._caller = caller_of(target.bucket, settings, RateLimit(settings.max_rate), self._permits)
        self._rules = rules_of(settings, ledger=ledger is not None)
        self._counts = _Counts(self._prices, settings, ledger=ledger is not None)
        self._started = time.monotonic()

    async def run(self) -> Estimate:
        """List the target, and return the estimate. Raises RunError if the bucket cannot be listed."""
        settings, target = self._settings, self._target
        async with open_asked(target.bucket, settings, self._caller, self._ceiling) as asked:
            facts, engine = asked.facts, asked.engine
            self._counts.questions = self._caller.counts["bucket"]
            plan = make_plan(self._rules, facts)
            began = time.monotonic()
            steps: StepSource = Listing(engine, self._caller)
            if settings.keep is not None and self._last is not None:
                reader = ObjectReader(engine, self._caller, plan.ask, (), stand_in(facts))
                groups = reused_groups(plan, ledger=self._reader is not None)
                now = datetime.fromtimestamp(self._clock(), UTC)
                last = LastRunFacts(self._last, settings, facts, groups, seconds_in_utc(now), self._clock, tidies=False)
                judge = judge_of(settings, plan, facts, versions=target.versions, now=now)
                values = self._counts.judges_values = judges_values(plan)
                steps = ObjectWalk(steps, (last,), reader, judge, asyncio.to_thread, values=values)
            await self._count_all(within_limit(steps.pages(target), self._stop), plan.ask)
            listing = time.monotonic() - began
        return self._counts.estimate(target, listing, self._ceiling, complete=not self._stop)

    async def _count_all(self, listed: AsyncGenerator[list[Listed], None], ask: Ask) -> None:
        try:
            async with one_ahead(listed) as ahead:
                while (page := await next_page(ahead, self._stop, whole_keys=False)) is not None:
                    self._counts.add_page(page, ask)
                    await self._look_up([step.ref for step in page if step.ref is not None])
        finally:
            if self._reader is not None:
                await self._reader.close()

    async def _look_up(self, refs: Sequence[ObjectRef]) -> None:
        """Look the objects up in the ledger, if there is one."""
        counts, wanted = self._counts, self._settings.algorithms
        if self._reader is None or counts.hashing is None:
            return
        for start in range(0, len(refs), _BATCH):
            batch = refs[start : start + _BATCH]
            for ref, digests in zip(batch, await self._reader.known(batch, wanted), strict=True):
                counts.add_digests(counts.hashing, ref, {*digests, *promised(ref)}.issuperset(wanted))

    def snapshot(self) -> Snapshot:
        """Return the present counts, for a progress line."""
        return Snapshot(
            what=visible(self._target.uri),
            objects=self._counts.objects,
            seconds=time.monotonic() - self._started,
            detail=counted(self._counts.pages, "page"),
            heard=self._counts.questions > 0,
        )


class _Counts:
    """The counts of a listing, by storage class, and their prices. hashing: None without a ledger."""

    def __init__(self, prices: Prices, settings: Settings, *, ledger: bool) -> None:
        self._prices = prices
        self._settings = settings
        self.questions = self.pages = self._markers = 0
        self.judges_values = False
        self.classes = defaultdict[str, ClassEstimate](ClassEstimate.of_none)
        self._kept = KeptEstimate()
        self.hashing = HashingEstimate() if ledger else None
        self._to_hash: Counter[str] = Counter()
        self._to_read: Counter[str] = Counter()

    @property
    def objects(self) -> int:
        return sum(one.objects for one in self.classes.values())

    def add_page(self, page: Iterable[Listed], ask: Ask) -> None:
        self.pages += 1
        for step in page:
            self._markers += step.delete_markers
            if (ref := step.ref) is not None:
                found = self.classes[ref.storage_class]
                found.objects += 1
                found.bytes += ref.size
                acl, head = ask.acl is None or (ask.acl_for_owner and ref.owner is None), ask.head is None
                kept_acl = acl and (step.known is not None or (step.facts or NO_FACTS).acl is not None)
                kept_head = head and (step.known is not None or (step.facts or NO_FACTS).head is not None)
                found.acl += acl and not kept_acl
                found.head += head and not kept_head
                self._kept.acl += kept_acl
                self._kept.head += kept_head

    def add_digests(self, hashing: HashingEstimate, ref: ObjectRef, known: bool) -> None:
        """Count an object by what an audit with --hash would do with it."""
        settings, name = self._settings, ref.storage_class
        routes = settings.batch_over is not None and ref.size > settings.batch_over
        if known:
            hashing.known += 1
        elif routes or (name in ARCHIVED_CLASSES and not ref.restored):
            hashing.unhashable += 1
        elif charged(name, ref.size) is not None and not settings.accept_cost:
            hashing.left_for_cost += 1
        else:
            self._to_hash[name] += 1
            self._to_read[name] += ref.size

    def estimate(self, target: Target, listing: float, ceiling: int, *, complete: bool) -> Estimate:
        """Return the estimate by the present counts. listing: seconds that the listing took. ceiling: most calls in
        flight.
        """
        settings, prices, classes = self._settings, self._prices, self.classes
        asked = {name: (one.acl + one.head) * prices.of_object_call(name) for name, one in classes.items()}
        for name, one in classes.items():
            one.dollars = in_dollars(asked[name])
        if self.hashing is not None:
            self.hashing.objects, self.hashing.bytes = self._to_hash.total(), self._to_read.total()
            self.hashing.dollars = in_dollars(self._of_hashing())
        calls = EstimatedCalls(
            list=self.pages,
            acl=sum(one.acl for one in classes.values()),
            head=sum(one.head for one in classes.values()),
            bucket=self.questions,
            get=self._to_hash.total() if settings.hash else 0,
        )
        spent = (self.pages + self.questions) * prices.list
        read = self._of_hashing() if settings.hash else 0
        pace, rate = _pace(settings, ceiling)
        return Estimate(
            target=target,
            complete=complete,
            objects=self.objects,
            bytes=sum(one.bytes for one in classes.values()),
            delete_markers=self._markers,
            classes={
                name: classes[name] for name in sorted(classes, key=lambda x: (-asked[x], -classes[x].objects, x))
            },
            calls=calls,
            dollars=in_dollars(spent + sum(asked.values()) + read),
            seconds=round(max(calls.total / rate, listing), 1),
            pace=pace,
            hashing=self.hashing,
            kept=None if settings.keep is None else self._kept,
            data_events_dollars=in_dollars((calls.total - calls.bucket) * prices.data_event),
            spent=in_dollars(spent),
            unpriced=tuple(sorted(classes.keys() - prices.get.keys())),
            prices={"as_of": prices.as_of, "region": prices.region, "replaced": list(prices.replaced)},
            not_counted=tuple(self._not_counted()),
        )

    def _of_hashing(self) -> int:
        prices = self._prices
        requests = sum(number * prices.of_object_call(name) for name, number in self._to_hash.items())
        return requests + sum(prices.of_bytes(name, size) for name, size in self._to_read.items())

    def _not_counted(self) -> Iterator[str]:
        yield "retries, and the second reading of objects that are overwritten meanwhile"
        yield "requests that write the run folder, and the ledger's"
        if self.judges_values:
            yield "HEADs of objects whose ACL is due and opens them to metadata values that a rule judges"
        if self._settings.source == MIXED:
            yield "the calls that S3 Inventory saves"
        if self._settings.key_policies:
            yield "kms:GetKeyPolicy, once for each KMS key"
        if self._to_hash:
            yield "further GETs of large objects, which are read in several ranges"


def _pace(settings: Settings, ceiling: int) -> tuple[str, float]:
    """Return the pace in words, and in calls a second. ceiling: most calls in flight."""
    in_flight = ceiling / CALL_SECONDS
    if settings.max_rate is not None and settings.max_rate <= in_flight:
        return f"{settings.max_rate:,.12g} calls a second", settings.max_rate
    return f"{ceiling:,} calls in flight of {CALL_SECONDS * 1000:.0f} ms each, assumed", in_flight
