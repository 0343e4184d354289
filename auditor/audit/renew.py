"""Read single objects again between two runs of their bucket, because an event on a queue says that they changed."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.ask_bucket import open_asked
from auditor.audit.judging_configuration import JudgedBy, judge_of, judged_by
from auditor.audit.sources.last_run import shows_same_acls
from auditor.audit.sources.walk import Listing, StepSource
from auditor.aws.sqs import BATCH, Queue, Received
from auditor.config.layers import Layer
from auditor.config.resources import caller_of
from auditor.config.settings import Settings
from auditor.errors import AuditorError, MessageError, OutputError
from auditor.hashing.queue.notification import decode_events
from auditor.hashing.queue.s3_event import ObjectEvent
from auditor.model.access import Verdict
from auditor.model.dates import seconds_in_utc
from auditor.model.finding import Judgement
from auditor.model.line_records import finding_line, object_line
from auditor.model.object import Acl, Evidence, Head, ObjectRef, ReadAt, Skipped
from auditor.model.target import Target
from auditor.rules.base import make_plan
from auditor.rules.exceptions import Exceptions
from auditor.rules.judge import Judge
from auditor.runs.reading import RunReader, latest_runs
from auditor.runs.renewals import is_renewal, read_renewals, write_renewals
from auditor.runs.run_files import PLAN
from auditor.runs.stores.base import Store
from auditor.s3.calls import ConcurrencyLimit
from auditor.s3.gather import stand_in
from auditor.s3.object_reader import ObjectReader
from auditor.s3.rate import RateLimit
from auditor.text import visible

log = logging.getLogger(__name__)

CALLS_AT_ONCE: Final = 16
"""Largest number of calls in flight, and of versions of a key that are read side by side."""
RENEWS: Final = frozenset({"created", "restored", "acl"})
"""The kinds of events after which an object is read. What was removed is seen by the next listing."""
POLL: Final = 5
"""Seconds for which one receive call waits for messages."""
VISIBILITY: Final = 300
"""Seconds that SQS hides a received message from others: a batch of ten events takes a few seconds."""


class Renewed(Struct, frozen=True):
    """The result of renewing the objects of some events.

    objects: number of object versions that were read. undecided: number of those of which a fact could not be read.
    exposed: the keys of objects that are exposed, were not before, and are covered by no exception.
    """

    objects: int = 0
    undecided: int = 0
    exposed: tuple[str, ...] = ()

    def __add__(self, other: Renewed) -> Renewed:
        return Renewed(self.objects + other.objects, self.undecided + other.undecided, (*self.exposed, *other.exposed))


class Renewer:
    """Reads objects of a bucket, judges them as the last run did, and writes their lines below renewals/.

    run: the last complete run of a target. by: its configuration. judge, reader: by the facts of the bucket as they are
    now. clock: returns the present time. sure: True if S3 shows of an ACL what it showed to the last run.
    """

    def __init__(
        self,
        run: RunReader,
        by: JudgedBy,
        judge: Judge,
        reader: ObjectReader,
        steps: StepSource,
        target: Target,
        clock: Callable[[], datetime],
        *,
        sure: bool,
    ) -> None:
        self._run = run
        self._by = by
        self._judge = judge
        self._reader = reader
        self._steps = steps
        self._target = target
        self._clock = clock
        self._sure = sure

    async def renew(self, keys: Sequence[str], told: Callable[[Renewed], Awaitable[None]]) -> Renewed:
        """Read the objects with these keys that belong to the run's target, tell of them, and write their lines.

        A key that is not listed any more has no line. told: sends the alert. It comes before the lines are written: of
        a reading that is written, the next one of the same event finds nothing new, so its alert would be lost. Raises
        RunError if every further call would fail too, OutputError if the lines cannot be written, and what `told`
        raises.
        """
        target = self._target
        wanted = [key for key in dict.fromkeys(keys) if key.startswith(target.prefix) and target.covers(key)]
        began = self._clock()
        found = [judged for key in wanted for judged in await self._judged(key, seconds_in_utc(began))]
        if not found:
            return Renewed()
        exposed = await asyncio.to_thread(self._newly_exposed, found)
        renewed = Renewed(len(found), sum(bool(one.evidence.unread) for one in found), exposed)
        await told(renewed)
        keeps = self._by.settings.keep_metadata
        lines = [
            (object_line(one, None, keeps), [finding_line(finding, one.verdict) for finding in one.findings])
            for one in found
        ]
        store, bucket = self._run.store, self._run.bucket_name
        await asyncio.to_thread(write_renewals, store, bucket, began, secrets.token_bytes(3), lines, sure=self._sure)
        return renewed

    async def _judged(self, key: str, at: str) -> list[Judgement]:
        target = replace(self._target, prefix=key, start_after=None, stop_at=key)
        refs = [step.ref async for page in self._steps.pages(target) for step in page if step.ref is not None]
        read: list[Evidence] = []
        for first in range(0, len(refs), CALLS_AT_ONCE):  # a key may have any number of versions
            read += await asyncio.gather(*map(self._reader.read, refs[first : first + CALLS_AT_ONCE]))
        return [self._judge.object(_timed(one, at)) for one in read if not one.vanished]

    def _newly_exposed(self, found: Sequence[Judgement]) -> tuple[str, ...]:
        """Return the keys that are exposed now and were not when they were read last. Blocks."""
        exceptions = Exceptions(self._by.settings.exceptions, self._run.bucket_name, seconds_in_utc(self._clock())[:10])
        keys = [
            one.evidence.ref.key
            for one in found
            if one.verdict is Verdict.EXPOSED
            and exceptions.of_object(one).verdict is None
            and self._verdict_before(one.evidence.ref) is not Verdict.EXPOSED
        ]
        return tuple(dict.fromkeys(keys))

    def _verdict_before(self, ref: ObjectRef) -> Verdict | None:
        """Return the verdict of the last renewal or, if there is none, of the run; None for a new object."""
        file = self._run.plan
        since = "" if file is None else file.now
        renewed = read_renewals(self._run.store, self._run.bucket_name, since, key=ref.key) or {}
        if (one := renewed.get((ref.key, ref.version_id))) is not None:
            return one.line.verdict
        lines = {line.version_id: line for line in self._run.of_key(ref.key)}
        return lines[ref.version_id].verdict if ref.version_id in lines else None


def _timed(evidence: Evidence, at: str) -> Evidence:
    """Return the evidence with the time at which its facts were read."""
    acl, head = isinstance(evidence.acl, Acl), isinstance(evidence.head, Head)
    return replace(evidence, read_at=ReadAt(at if acl else None, at if head else None)) if acl or head else evidence


@asynccontextmanager
async def open_renewer(
    run: RunReader, settings: Settings, rate: RateLimit, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncIterator[Renewer]:
    """Ask about the bucket of a complete run, and open an engine to read its objects, for the `with` block.

    settings: the connection; the rest comes from the run. rate: the ceiling of calls. Raises RunError, and OutputError
    for a run without its run.json.
    """
    file = await asyncio.to_thread(lambda: run.plan)
    if file is None:
        raise OutputError(f"{run.uri} has no {PLAN}: audit the bucket first")
    by = judged_by(file, f"{run.uri}/{PLAN}", Layer({}, str))
    settings = replace(settings, max_calls=None, semantics=file.facts.semantics)
    bucket = run.bucket_name
    caller = caller_of(bucket, settings, rate, ConcurrencyLimit(CALLS_AT_ONCE))
    reads_keys = not isinstance(file.facts.key_policies, Skipped)
    async with open_asked(bucket, settings, caller, CALLS_AT_ONCE, reads_keys=reads_keys) as asked:
        facts, engine = asked.facts, asked.engine
        plan = make_plan(by.rules, facts)
        judge = judge_of(by.settings, plan, facts, versions=file.target.versions, now=clock())

        reader = ObjectReader(engine, caller, plan.ask, (), stand_in(facts), asked.keys)
        sure = shows_same_acls(file.facts, facts)
        yield Renewer(run, by, judge, reader, Listing(engine, caller), file.target, clock, sure=sure)


OpenRenewer = Callable[[RunReader, Settings, RateLimit], AbstractAsyncContextManager[Renewer]]
Told = Callable[[RunReader, Renewed], Awaitable[None]]
"""Called with each run whose objects were read, before their lines are written."""


class EventCounts(Struct):
    """The counts of one command or batch. failed: messages that come again."""

    messages: int = 0
    failed: int = 0
    renewed: Renewed = field(default_factory=Renewed)


class BatchOutcome(Struct, frozen=True):
    """The messages of a batch that are not done, by ID.

    failed: they must come again. malformed: no receipt makes them readable; the reason, which never quotes the body.
    """

    failed: frozenset[str]
    malformed: Mapping[str, str]


class BatchRenewer:
    """Renews the objects that batches of messages with events of S3 name.

    A message may come twice, and messages come in any order: an event only says which object to read. rate: the ceiling
    of calls of all batches. told: sends the alert on what was renewed; if it raises AuditorError, nothing is written
    and the messages come again. opening: opens a renewer for the objects of a run.
    """

    def __init__(
        self, store: Store, settings: Settings, rate: RateLimit, told: Told, *, opening: OpenRenewer = open_renewer
    ) -> None:
        self.counts = EventCounts()
        self._store = store
        self._settings = settings
        self._told = told
        self._opening = opening
        self._rate = rate

    async def renew(self, batch: Sequence[Received]) -> BatchOutcome:
        """Read the objects that the messages name, and return the messages that are not done."""
        keys: dict[str, dict[str, None]] = {}
        buckets: dict[str, set[str]] = {}
        malformed: dict[str, str] = {}
        for received in batch:
            try:
                events = [one for one in decode_events(received.body) if self._counts(one)]
            except MessageError as error:
                malformed[received.id] = str(error)
                continue
            for one in events:
                keys.setdefault(one.bucket, {})[one.key] = None
                buckets.setdefault(received.id, set()).add(one.bucket)
        broken = {bucket for bucket, names in keys.items() if not await self._renewed(bucket, list(names))}
        failed = {received.id for received in batch if not broken.isdisjoint(buckets.get(received.id, ()))}
        self.counts.messages += len(batch)
        self.counts.failed += len(failed) + len(malformed)
        return BatchOutcome(frozenset(failed), malformed)

    def _counts(self, event: ObjectEvent) -> bool:
        """True if the event's object is read. The renewals of an audited reports bucket lie in it: to read them after
        the event on each would write the next one, without an end.
        """
        return event.kind in RENEWS and not is_renewal(self._store, event.bucket, event.key)

    async def _renewed(self, bucket: str, keys: Sequence[str]) -> bool:
        """Renew the objects with these keys, and tell of them. Return False if that failed, so that the events must
        come again.
        """
        try:
            left = {versions: list(keys) for versions in (False, True)}
            runs = await asyncio.to_thread(latest_runs, self._store, bucket)
            if not runs:
                log.info("the bucket %s has no complete run yet: its first one reads these objects", bucket)
            for run in runs:
                await self._by(run, left)
        except AuditorError as error:
            log.error("events of the bucket %s will be redelivered: %s", bucket, visible(str(error)))
            return False
        return True

    async def _by(self, run: RunReader, left: dict[bool, list[str]]) -> None:
        """Renew the objects of the run's target, and take their keys off the list. left: by Target.versions."""
        target = (await asyncio.to_thread(lambda: run.begun_with)).target
        mine = [key for key in left[target.versions] if key.startswith(target.prefix)]
        if not mine:
            return
        async with self._opening(run, self._settings, self._rate) as renewer:
            renewed = await renewer.renew(mine, partial(self._told, run))
        left[target.versions] = [key for key in left[target.versions] if key not in set(mine)]
        self.counts.renewed += renewed


class EventRenewer:
    """Receives messages from a queue, and renews the objects that they name. Call run() once.

    A message is deleted once its objects are read and their lines are written; any other stays. idle: run() ends after
    so many seconds without a message.
    """

    def __init__(self, queue: Queue, renewer: BatchRenewer, stop: Stop, *, idle: float, poll: int = POLL) -> None:
        self._queue = queue
        self._renewer = renewer
        self._stop = stop
        self._idle = idle
        self._poll = poll

    async def run(self) -> EventCounts:
        """Work until the queue has been empty for `idle` seconds, or until the stop. Raises QueueError."""
        waited = 0.0
        while not self._stop and waited < self._idle:
            batch = await self._queue.receive(BATCH, wait=self._poll, visibility=VISIBILITY)
            waited = 0.0 if batch else waited + self._poll
            if not batch:
                continue
            outcome = await self._renewer.renew(batch)
            for name, reason in outcome.malformed.items():
                log.warning("message %s is malformed, and is left on the queue: %s", name, reason)
            left = outcome.failed | outcome.malformed.keys()
            await self._queue.delete([received.receipt for received in batch if received.id not in left])
        return self._renewer.counts
