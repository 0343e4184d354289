"""Audit one target: read the bucket's settings, list, read objects, judge, hash, write the run folder."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from auditor.aio.groups import task_group
from auditor.aio.stop import Stop
from auditor.audit.begin import (
    RunSoFar,
    against_of,
    ask_bucket,
    ask_setting,
    check_budget,
    listed_by,
    load_run,
    permits_of,
)
from auditor.audit.digests import dispatcher_of, finder_of
from auditor.audit.ending import GatheredRun, RunEnding
from auditor.audit.excepting import RunExceptions
from auditor.audit.folder_thread import FolderThread, silent
from auditor.audit.judged_by import begun_file
from auditor.audit.recorder import Recorder
from auditor.audit.resume import begun_rollups, selection_of
from auditor.audit.standing import Standings
from auditor.aws.connection import Connection
from auditor.config.resources import Resources, caller_of, connection_to
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.hashing.limits import STREAMS
from auditor.model.bucket import BucketFacts
from auditor.model.dates import iso_date
from auditor.model.object import Acl, Skipped
from auditor.model.rollup import RollUps
from auditor.model.summary import Resume, Summary
from auditor.model.target import Target
from auditor.progress import Snapshot
from auditor.reports.compare import judged_by
from auditor.reports.highlights import Highlights
from auditor.reports.open_kinds import JudgedFor
from auditor.reports.rollup import RollUpBuilder
from auditor.rules import RULES
from auditor.rules.judge import Judge
from auditor.rules.plan import Plan, carried_on, judges_values, make_plan
from auditor.rules.selection import select
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.bucket_file import BucketFile, ReadFacts
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.folder import PART_LINES, RunFolder
from auditor.runs.paths import UNDIVIDED, began_at, new_run_id
from auditor.runs.reading import RunReader
from auditor.runs.tally import Tally
from auditor.s3.engines.base import Engine
from auditor.s3.engines.pool import EnginePool
from auditor.s3.gather import EvidenceReader, gather
from auditor.s3.listing import Listed, pages
from auditor.s3.object_reader import ObjectReader, stand_in
from auditor.s3.rate import RateLimit
from auditor.text import counted, visible

if TYPE_CHECKING:
    from auditor.audit.mixed.source import PageFacts
    from auditor.s3.key_policies import KeyPolicies

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 1.0


class Audit:
    """Audits one target. Call run() once.

    run_id: ID of an earlier run of the same target, to resume it; None for a new run. resume: False to begin a new run
    with the ID `run_id`. began: called with the run's ID once the run folder exists. hop: number of Lambda invocations
    before this one in the chain that hands the run on. hands_on: True if the next invocation continues a stopped run,
    so that this one writes no summary. clock: returns the present time, in seconds since 1970. shown: the objects and
    findings that a report names; it grows while run() works, and is whole at its end. rollups: the roll-ups of the run,
    after run(); None if it has none.
    """

    def __init__(
        self,
        target: Target,
        settings: Settings,
        places: Resources,
        stop: Stop,
        *,
        began: Callable[[str], None] | None = None,
        run_id: str | None = None,
        resume: bool = True,
        hop: int = 0,
        hands_on: bool = False,
        part_lines: int = PART_LINES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._part_lines = part_lines
        self._hands_on = hands_on
        self._settings = settings
        self._places = places
        self._outer_stop = stop
        self._stop = Stop(stop)  # a stop of its own: if --max-calls ends this run, the other runs go on
        self._began = began
        self.shown = Highlights()
        self.rollups: RollUps | None = None
        self._hop = hop
        self._resumed = resume and run_id is not None
        self.run_id = run_id or new_run_id(datetime.fromtimestamp(clock(), UTC), secrets.token_bytes(3))
        self._target = target
        self._ceiling, permits = permits_of(settings)
        self._rate = RateLimit(settings.max_rate)
        self._caller = caller_of(target.bucket, settings, self._rate, permits, ceiling=places.ceiling, limits_cost=True)
        spare = (settings.streams or STREAMS) if settings.hash else 0  # for an object that several streams read
        self._connection = connection_to(target.bucket, settings, self._ceiling + spare)
        ledger = places.ledger is not None
        self._rules = select(RULES, settings.rules, settings.only, settings.ignore, settings.level, ledger=ledger)
        self._selection = selection_of(self._rules, settings, ledger=ledger)
        self._thread = FolderThread(stop)
        self._started = time.monotonic()
        self._before: RunReader | None = None
        self._expected: int | None = None
        self._engines = places.engines
        self._tally = Tally()
        self._rollups: RollUpBuilder | None = None
        self._stand_in: Acl | None = None
        self._keys: KeyPolicies | None = None
        self._asked: BucketFacts | None = None
        self._lacks_acls = False
        self._mixed: PageFacts | None = None
        self._folder: RunFolder | None = None
        self._against: str | None = None
        self._earlier: RunReader | None = None
        self._began_at: str | None = None
        self._range_id = UNDIVIDED
        self._describes = BUCKET_FILE
        self._records_bucket = True
        """True if the process writes the findings on the bucket itself, before the first object."""
        self._now = began_at(self.run_id)
        """The time at which conditions with a date are judged, in ISO 8601."""
        self._is_latest = True
        """True if the run becomes the target's latest one when it is complete."""
        self.unsent: str | None = None
        """A sentence on the objects that the queue did not take before the end; None if it took all."""

    async def run(self) -> Summary:
        """Audit the target, write the summary to the run folder, and return it. After a RunError, written parts stay.

        Raises RunStopped if a server does not answer in time after a stop, so that the run cannot begin or be saved.
        """
        try:
            async with EnginePool(self._places.engines) as engines:
                self._engines = engines.lend
                async with self._outer_stop.flight() as limit, task_group() as group:
                    run_id = self.run_id if self._resumed else None
                    store = self._places.store
                    loading = group.create_task(self._thread.run(self._load, run_id))
                    if run_id is not None:  # a run that cannot be resumed makes no call
                        await asyncio.wait([loading])
                    asking = group.create_task(self._ask())
                if limit.expired():
                    asked_place = store.uri() if loading.cancelled() else f"s3://{self._target.bucket}"
                    raise silent(asked_place, self._outer_stop)
                before: RunSoFar = loading.result()
                state, self._target, self._before = before.state, before.target, before.latest
                self._connection, asked = asking.result()
                facts = self._facts(asked, before)
                plan = carried_on(make_plan(self._rules, facts), state.rules_undecided if state else ())
                check_budget(self._caller, self._settings, 1 + self._calls_per_object(plan))
                return await self._audit(facts, plan, before)
        finally:
            self._thread.end()

    @property
    def calls_left(self) -> int | None:
        """The number of calls that --max-calls still allows; None if there is no limit."""
        return self._caller.budget_left

    @property
    def dollars_left(self) -> float | None:
        """The dollars that --max-cost still allows; None if there is no limit."""
        return self._caller.cost.left if self._caller.cost is not None else None

    @property
    def saved(self) -> Resume | None:
        """The point from which the run can be continued; None if this process saved no progress."""
        if self._folder is None or self._folder.saved_key == self._began_at:
            return None
        return Resume(self.run_id, self._folder.saved_key, self._stop.reason)

    def _load(self, run_id: str | None) -> RunSoFar:
        """Load the run `run_id` to resume it, None for a new run, and the target's last run. Blocks."""
        return load_run(self._places.store, run_id, self._target, self._selection)

    async def _ask(self) -> tuple[Connection, BucketFacts]:
        """Ask about the bucket. Return the connection with the bucket's region, and the facts."""
        return await ask_bucket(self._settings, self._connection, self._caller, self._engines)

    async def _ask_setting(self, action: str, token: str | None) -> Mapping[str, Any]:
        return await ask_setting(self._settings, self._connection, self._caller, self._engines, action, token)

    def _facts(self, asked: BucketFacts, before: RunSoFar) -> BucketFacts:
        """Return the facts of the bucket by which to judge. asked: those that were read just now."""
        return asked

    async def _audit(self, facts: BucketFacts, plan: Plan, before: RunSoFar) -> Summary:
        async with AsyncExitStack() as stack:
            if self._settings.source == MIXED:
                start = before.state.start_after if before.state else None
                target = self._target if start is None else replace(self._target, start_after=start)
                self._mixed = await stack.enter_async_context(self._open_mixed(target, facts))
            if plan.ask.head is None and self._reads_keys(facts):
                from auditor.s3.key_policies import open_key_policies

                known = before.bucket.facts.key_policies if before.bucket else facts.key_policies
                known = {} if isinstance(known, Skipped) else known
                opening = open_key_policies(self._connection, self._caller, known)
                self._keys = await stack.enter_async_context(opening)
                facts = replace(facts, key_policies=self._keys.policies)
            return await self._audit_objects(facts, plan, before)

    def _open_mixed(self, target: Target, facts: BucketFacts) -> AbstractAsyncContextManager[PageFacts]:
        """Open the facts of S3 Inventory. target: with the keys that are still to be audited."""
        from auditor.audit.mixed.opening import open_mixed  # few audits read an Inventory

        return open_mixed(self._settings, target, facts, self._outer_stop, self._clock, self._ask_setting)

    async def _audit_objects(self, facts: BucketFacts, plan: Plan, before: RunSoFar) -> Summary:
        settings, target, state = self._settings, self._target, before.state
        self._asked = facts
        self._stand_in = stand_in(facts)
        tally = self._tally = Tally.from_dict(state.tally) if state else self._first_tally()
        rollups = self._rollups = begun_rollups(state)
        now = iso_date(self._now)
        judge = Judge(plan, facts, trusted=settings.trusted, options=settings.rules, versions=target.versions, now=now)
        if rollups is not None:
            rollups.count_kinds(JudgedFor(facts, settings.trusted, target.versions, now))
        self._against = against_of(before)
        folder = self._folder = RunFolder(
            self._places.store,
            target.bucket,
            self.run_id,
            self._range_id,
            target=target,
            selection=self._selection,
            rules_undecided=plan.undecided,
            tally=tally,
            hop=self._hop,
            state=state,
            part_lines=self._part_lines,
            fresh=not self._resumed,
            describe=self._describer(before, facts, plan),
            describes=self._describes,
            described=before.bucket_data,
            growing=self._keys is not None,
            previous=before.latest.run_id if before.latest else None,
            rollups=rollups,
        )
        self._began_at = folder.saved_key
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._thread.close, folder)
            async with self._outer_stop.flight() as limit:
                await self._thread.run(folder.prepare)
                engine = await stack.enter_async_context(self._engines((settings.engine, self._connection)))
            if limit.expired():
                raise silent(folder.uri, self._outer_stop)
            self._caller.permits.assume_open(engine.open_connections)
            dispatcher = dispatcher_of(target.bucket, self.run_id, settings, self._places)
            fixity = finder_of(
                target.bucket,
                settings,
                self._places,
                engine,
                stack,
                rate=self._rate,
                concurrency=self._ceiling,
                stop=self._stop,
            )
            standings = await self._thread.run(self._open_standings, before, facts, plan, tally)
            exceptions = RunExceptions(settings, target.bucket, self._now, tally)
            recorder = self._recorder(
                judge,
                standings,
                exceptions,
                folder,
                tally,
                fixity,
                dispatcher,
                settings,
                self._caller.counts,
                self._thread.run,
                rollups,
            )
            self.shown = recorder.shown
            if self._began is not None:
                self._began(self.run_id)
            if self._records_bucket and (state is None or not state.begun):
                recorder.record_bucket()
            try:
                async with self._outer_stop.flight() as limit:
                    ended = await self._gather(engine, plan, judge, recorder, state, folder)
                async with self._outer_stop.sending() as sending:
                    await recorder.send_rest()
                if sending.expired():
                    left = counted(tally.hashing["pending"], "object")
                    self.unsent = f"the queue did not answer: the next audit sends {left} without a digest"
                    log.warning("%s", self.unsent)
                engine.keep_idle(
                    self._caller.permits.statistics().limit
                )  # if S3 throttled this run, the next run begins with fewer connections
                if limit.expired():
                    ended = False
                    self._resumed |= target.versions  # the report then names only lines that stay
                    recorder.count_calls()
                    await self._thread.save(folder, lambda: folder.save(whole_key=False))
            except BaseException:
                # Save the objects gathered so far. In a run over versions the last key may lack versions.
                async with self._outer_stop.saving():
                    await self._thread.run(lambda: folder.save(whole_key=False))
                raise
            return await self._finish(facts, plan, folder, recorder, ended)

    def _reads_keys(self, facts: BucketFacts) -> bool:
        """True to read the policy of each KMS key that encrypts an object."""
        return self._settings.key_policies

    def _describer(self, before: RunSoFar, facts: BucketFacts, plan: Plan) -> Callable[[int], bytes] | None:
        """Return what makes the bytes of the file that describes the bucket, given the number of the first part."""
        return partial(self._describe, before, facts, plan)

    def _describe(self, before: RunSoFar, facts: BucketFacts, plan: Plan, first_part: int) -> bytes:
        """Return the bytes of bucket.json for a process that read these facts and writes the part first_part first."""
        if self._keys is not None:
            facts = replace(facts, key_policies=dict(self._keys.policies))  # it may grow meanwhile
        if before.bucket is not None:
            return before.bucket.resumed(facts, plan.ask, first_part).to_json()
        return self._bucket_file(facts, plan, first_part).to_json()

    def _bucket_file(self, facts: BucketFacts, plan: Plan, first_part: int) -> BucketFile:
        read, ledger = ReadFacts(first_part, facts, plan.ask), self._places.ledger is not None
        return begun_file(
            self.run_id, self._target, self._rules, self._settings, read, ledger=ledger, against=self._against
        )

    def _open_standings(self, before: RunSoFar, facts: BucketFacts, plan: Plan, tally: Tally) -> Standings:
        """Return the standings, which compare with the last complete run. Blocks."""
        file = self._bucket_file(facts, plan, 0)
        earlier = None
        if self._against is not None:
            earlier = self._earlier = RunReader(self._places.store, self._target.bucket, self._against)
            earlier.prepare()
        start = before.state.start_after if before.state else None
        done: list[str | None] = [None]
        if start is not None and self._target.versions:
            run = RunReader(self._places.store, self._target.bucket, self.run_id)
            done = [line.version_id for line in run.of_key(start, self._range_id)]
        judged, keys = judged_by(self._rules, plan), self._target
        standings = Standings(began_at(self.run_id), tally, earlier, judged, start, done, file, keys)
        standings.open()
        return standings

    async def _gather(
        self,
        engine: Engine,
        plan: Plan,
        judge: Judge,
        recorder: Recorder,
        state: Checkpoint | None,
        folder: RunFolder,
    ) -> bool:
        target = self._target
        if state is not None and state.start_after is not None:
            target = replace(target, start_after=state.start_after)
        reader = ObjectReader(engine, self._caller, plan.ask, self._settings.algorithms, self._stand_in, self._keys)
        async with task_group() as group:
            ticker = group.create_task(self._tick(folder))
            steps, source = self._source(engine, target, reader, judge, plan)
            ended = await gather(
                steps,
                source,
                self._caller,
                self._stop,
                recorder.record,
                calls_per_object=self._calls_per_object(plan) + (self._keys is not None),
                whole_keys=target.versions,
            )
            ticker.cancel()
        self._lacks_acls = reader.lacks_acls
        return ended

    def _calls_per_object(self, plan: Plan) -> int:
        """Return the largest number of calls for one object, without the policy of its KMS key."""
        return plan.ask.calls + (self._settings.keep is not None and judges_values(plan))

    def _source(
        self, engine: Engine, target: Target, reader: ObjectReader, judge: Judge, plan: Plan
    ) -> tuple[AsyncGenerator[list[Listed], None], EvidenceReader]:
        """Return the pages of the objects to audit, and the reader of their facts."""
        steps = pages(engine, self._caller, target)
        source: EvidenceReader = reader
        if self._settings.keep is not None and self._earlier is not None and self._asked is not None:
            from auditor.audit.keeping.begin import Opening
            from auditor.audit.keeping.source import KeepingSource

            opening = Opening(
                self._earlier, self._settings, self._asked, plan, self._now, self._places.ledger is not None
            )
            values = judge if judges_values(plan) else None
            source = kept = KeepingSource(partial(opening.open, target.start_after), reader, values, self._clock)
            steps = kept.pages(steps, self._thread.run)
        if self._mixed is not None:
            heads = plan.ask.head is None and self._places.ledger is None
            steps = self._mixed.pages(steps, reader, judge, self._thread.run, heads=heads)
        return steps, source

    async def _tick(self, folder: RunFolder) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            before, self._before = self._before, None
            if before is not None:
                self._expected = await self._thread.run(listed_by, before)
            folder.check_due()
            await self._thread.run(folder.flush)

    def snapshot(self) -> Snapshot:
        """Return the present counts, for a progress line."""
        tally = self._tally
        return Snapshot(
            what=visible(self._target.uri),
            objects=tally.coverage["listed"],
            seconds=time.monotonic() - self._started,
            detail=f"{counted(sum(tally.findings.values()), 'finding')}, {tally.coverage['undecided']:,} undecided,"
            f" {self._caller.counts['throttled']:,} throttled",
            expected=self._expected,
        )

    async def _finish(
        self, facts: BucketFacts, plan: Plan, folder: RunFolder, recorder: Recorder, ended: bool
    ) -> Summary:
        run = GatheredRun(
            run_id=self.run_id,
            target=self._target,
            settings=self._settings,
            places=self._places,
            region=self._connection.region,
            facts=facts,
            plan=plan,
            folder=folder,
            recorder=recorder,
            rollups=self._rollups,
            earlier=self._earlier,
            complete=ended,
            resumed=self._resumed,
            is_latest=self._is_latest,
            lacks_acls=self._lacks_acls,
            algorithms=self._algorithms,
            more_unseen=tuple(self._more_unseen()),
            started=self._started,
            stopped=self._stop.reason,
        )
        return await self._end(RunEnding(run, self._thread), ended)

    async def _end(self, ending: RunEnding, ended: bool) -> Summary:
        """End the run. ended: True if the listing reached its end."""
        if self._hands_on and self._outer_stop and not ended:
            return await ending.hand_on()
        summary = await ending.finish()
        self.shown, self.rollups = ending.shown, ending.rollups
        return summary

    @property
    def _algorithms(self) -> Sequence[str] | None:
        """The wanted digests that the summary counts; None without a ledger."""
        return None if self._places.ledger is None else self._settings.algorithms

    def _first_tally(self) -> Tally:
        """Return the counts with which a new run begins."""
        return Tally()

    def _recorder(self, *arguments: Any) -> Recorder:
        return Recorder(*arguments)

    def _more_unseen(self) -> Iterable[str]:
        """Return phrases on further things that the run did not look at, for the summary."""
        return () if self._mixed is None else self._mixed.unseen_words(self._tally.unreported)
