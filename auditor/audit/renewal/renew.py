"""Read single objects again between two runs of their bucket, because an event says that they changed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.begin import open_asked
from auditor.audit.judged_by import JudgedBy, judge_of, judged_by
from auditor.audit.sources.last_run import shows_same_acls
from auditor.audit.sources.walk import Listing, StepSource
from auditor.config.layers import Layer
from auditor.config.resources import caller_of
from auditor.config.settings import Settings
from auditor.errors import OutputError
from auditor.model.access import Verdict
from auditor.model.dates import seconds_in_utc
from auditor.model.finding import Judgement
from auditor.model.line_records import finding_line, object_line
from auditor.model.object import Acl, Evidence, Head, ObjectRef, ReadAt, Skipped
from auditor.model.target import Target
from auditor.rules.exceptions import Exceptions
from auditor.rules.judge import Judge
from auditor.rules.plan import make_plan
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.reading import RunReader
from auditor.runs.renewals import read_renewals, write_renewals
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.object_facts import stand_in
from auditor.s3.object_reader import ObjectReader
from auditor.s3.rate import RateLimit

CALLS_AT_ONCE: Final = 16
"""Largest number of calls in flight, and of versions of a key that are read side by side."""


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
        file = self._run.bucket
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
    for a run without its bucket.json.
    """
    file = await asyncio.to_thread(lambda: run.bucket)
    if file is None:
        raise OutputError(f"{run.uri} has no {BUCKET_FILE}: audit the bucket first")
    by = judged_by(file, f"{run.uri}/{BUCKET_FILE}", Layer({}, str))
    settings = replace(settings, max_calls=None, semantics=file.facts.semantics)
    bucket = run.bucket_name
    caller = caller_of(bucket, settings, rate, ConcurrencyLimit(CALLS_AT_ONCE))
    reads_keys = not isinstance(file.facts.key_policies, Skipped)
    async with open_asked(bucket, settings, caller, CALLS_AT_ONCE, reads_keys=reads_keys) as asked:
        facts, engine = asked.facts, asked.engine
        plan = make_plan(by.rules, facts)
        judge = judge_of(by.settings, plan, facts, versions=file.target.versions, now=clock())

        reader = ObjectReader(engine, caller, plan.ask, (), stand_in(facts), asked.keys)
        sure = all(shows_same_acls(one.facts, facts) for one in file.read)
        yield Renewer(run, by, judge, reader, Listing(engine, caller), file.target, clock, sure=sure)
