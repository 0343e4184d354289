"""Work on one range of a run: read, judge and record its objects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from auditor.aio.tasks import task_group
from auditor.audit.begin_run import calls_per_object, listed_by
from auditor.audit.compare_with_last import LastRunComparison
from auditor.audit.judging_configuration import begun_rollups, check_rollups, judge_of
from auditor.audit.range_progress import damage
from auditor.audit.record import LineWriter, Recorder, RecordJudge, RunExceptions
from auditor.audit.run_context import RunContext, silent
from auditor.audit.sources.last_run import LastRunFacts, reused_groups
from auditor.audit.sources.walk import FactSource, Listing, ObjectWalk, RunObjects
from auditor.config.values import MIXED
from auditor.errors import InventoryError, InventoryMissing, OutputError, RunDamaged
from auditor.hashing.queue.send import Dispatcher
from auditor.model.dates import iso_date
from auditor.model.object import Skipped
from auditor.model.summary import NO_INVENTORY
from auditor.reports.changes import judged_by
from auditor.reports.first_steps import JudgedFor
from auditor.rules.base import judges_values
from auditor.rules.judge import Judge
from auditor.runs.checkpoint import Checkpoint, RangeEnd
from auditor.runs.key_file import KeyFile, StoredPolicies, range_policies
from auditor.runs.parts import found_parts
from auditor.runs.paths import began_at, run_path
from auditor.runs.reading import RunReader
from auditor.runs.run_files import PLAN
from auditor.runs.segment import PART_LINES, Segment
from auditor.runs.tally import Tally
from auditor.s3.engines.base import Engine
from auditor.s3.gather import gather, stand_in
from auditor.s3.key_policies import open_key_policies
from auditor.s3.object_reader import ObjectReader
from auditor.text import counted, visible

if TYPE_CHECKING:
    from auditor.audit.fill import Filling

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 1.0


@asynccontextmanager
async def open_range(run: RunContext, range_id: str, *, alone: bool) -> AsyncIterator[RunContext]:
    """Load the state of a range, open the further sources of facts that the settings name, and yield the context for
    the range. alone: True if it is the only range of the run.
    """
    state = None if run.fresh else await run.thread.run(_state, run, range_id)
    run = replace(run, range=run.plan.range(range_id), state=state)
    async with AsyncExitStack() as stack:
        if run.settings.source == MIXED:
            run = await _with_inventory(run, stack, alone=alone)
        if run.judging.ask.head is None and run.plan.reads_keys:
            own = run.plan.facts.key_policies
            known = {} if isinstance(own, Skipped) else dict(own)
            if not run.fresh:
                known |= await run.thread.run(_policies, run)
            keys = await stack.enter_async_context(open_key_policies(run.connection, run.caller, known))
            run = replace(run, keys=keys, facts=replace(run.facts, key_policies=keys.policies))
        yield run


class RangeWork:
    """Reads, judges and records the objects of one range. Enter opened(), then call record() once.

    run: the context for the range. filling: the run to fill; None to list the objects. part_lines: number of lines of a
    part's largest file at which the part ends. latest: the target's last complete run, which tells about how many
    objects there are; None if there is none. alone: True if this process concludes the run, too.
    """

    _engine: Engine
    _reader: ObjectReader
    _listing: Listing
    _objects: RunObjects

    def __init__(
        self,
        run: RunContext,
        *,
        filling: Filling | None = None,
        part_lines: int = PART_LINES,
        latest: RunReader | None = None,
        alone: bool = False,
    ) -> None:
        self._run = run
        self._filling = filling
        self._facts: list[FactSource] = []
        self._alone = alone
        self.resumed = run.state is not None
        """True if the run folder has lines of the range that this process does not have in memory."""
        self.lacks_acls = False
        """True if the server has no ACLs of objects."""
        self.complete = False
        """True if the listing reached the end of the range."""
        self._latest = latest if run.range.keys is None else None
        self.expected = run.range.keys
        """Estimate of the number of objects; None if there is none."""
        self.unsent: str | None = None
        """A sentence on the objects that the queue did not take before the end; None if it took all."""
        first = Tally() if filling is None else filling.first_tally()
        self.tally = run.state.tally.copy() if run.state else first
        """The counts of the range."""
        self.sums = self.tally
        """The counts of the range for the summary of the run, once record() has ended."""
        self._judge: Judge | None = None
        self.rollups = begun_rollups(run.state)
        self.segment = Segment(
            run.places.store,
            run.target.bucket,
            run.run_id,
            run.range.id,
            tally=self.tally,
            state=run.state,
            part_lines=part_lines,
            fresh=run.fresh,
            keys=None if run.keys is None else self._keys,
            rollups=self.rollups,
        )
        self._first_saved = self.segment.saved_key

    @property
    def judges_large_policy(self) -> bool:
        """True if the bucket's policies are so large that judging them takes a while."""
        return self._judge is not None and self._judge.is_large

    @property
    def progressed(self) -> bool:
        """True if a checkpoint with a further key was saved."""
        return self.segment.saved_key != self._first_saved

    def _keys(self) -> bytes:
        assert self._run.keys is not None
        return KeyFile(run=self._run.run_id, policies=dict(self._run.keys.policies)).to_json()

    @asynccontextmanager
    async def opened(self, began: Callable[[], None] = lambda: None) -> AsyncIterator[Recorder]:
        """Claim the range, open the engine and the recorder, and yield the recorder. began: called once the range is
        claimed.

        Raises RunStopped if a server does not answer in time after a stop.
        """
        run = self._run
        async with AsyncExitStack() as stack:
            stack.push_async_callback(run.thread.close, self.segment)
            engine = await self._open_engine(stack)
            if self._filling is None:
                self._listing = Listing(engine, run.caller)
                self._listing.begin(run.remaining)
                stack.push_async_callback(self._listing.close)
            comparison = await run.thread.run(self._compare_with_last)
            trusted, versions, judged_at = run.settings.trusted, run.target.versions, iso_date(run.plan.now)
            self.rollups.count_kinds(JudgedFor(run.facts, trusted, versions, judged_at))
            judge = judge_of(run.settings, run.judging, run.facts, versions=versions, now=judged_at)
            self._judge = judge
            self._reader = ObjectReader(
                engine, run.caller, run.judging.ask, run.settings.algorithms, stand_in(run.facts), run.keys
            )
            self._engine = engine
            self._objects, record_judge = self._walk(judge)
            recorder = self._open_recorder(record_judge, comparison, stack)
            began()
            yield recorder

    async def record(self, recorder: Recorder) -> None:
        """Gather and record the objects up to the end of the range or to a stop, and send those to hash.

        Before an error is raised, the objects gathered so far are saved.
        """
        run, segment = self._run, self.segment
        first = run.range.id == run.plan.ranges[0].id
        if first and (run.state is None or not run.state.begun):
            recorder.record_bucket()
        try:
            async with run.outer_stop.flight() as limit:
                ended = await self._gather(recorder)
            sent = await self._send_rest(recorder)
            # If S3 throttled this run, the next run begins with fewer connections.
            self._engine.keep_idle(run.caller.permits.statistics().limit)
            if limit.expired():
                ended = False
                self.resumed |= run.target.versions  # the report then names only lines that stay
                recorder.count_calls()
                await run.thread.save(segment.uri, lambda: segment.save(whole_key=False))
        except BaseException:
            # In a run over versions the last key may lack versions.
            async with run.outer_stop.saving():
                await run.thread.run(lambda: segment.save(whole_key=False))
            raise
        self.complete = ended and sent
        self.lacks_acls = self._reader.lacks_acls
        recorder.count_calls()
        if self._alone:  # a process that takes the run up from its checkpoint counts what follows again
            self.sums = self.tally.copy()
        if self.complete:  # what only the last run has up to the end of the range
            await run.thread.save(segment.uri, partial(recorder.comparison.end, self.sums))

    def unseen(self) -> list[str]:
        """Return phrases on further things that the run does not look at, for the summary."""
        if self._filling is not None:
            return list(self._filling.unseen())
        lacking = self._run.without_inventory
        found = [f"{NO_INVENTORY} ({lacking})"] if lacking else []
        return [*found, *(phrase for source in self._facts for phrase in source.unseen(self.tally))]

    def save_end(self) -> None:
        """Save the checkpoint of a range that is complete or was stopped, and the seal of its parts, for the process
        that continues or concludes the run. Blocks.
        """
        if self.complete:
            self.segment.end_range(RangeEnd(lacks_acls=self.lacks_acls))
        else:
            self.segment.hand_on()

    def save_alone(self) -> None:
        """Save the checkpoint of a range whose process concludes the run, and prove that the parts of earlier processes
        are there with the lines that are counted. Should the process die before the end, the next one lists on. Blocks.
        Raises RunDamaged.
        """
        self.segment.save()
        if not (self.resumed and self.complete):
            return
        segment = self.segment
        there = {part.path for part in found_parts(self._run.places.store, segment.path)}
        if fault := damage(self._run.range, self.tally, segment.sealed_parts(), there):
            raise RunDamaged(f"{segment.uri} is damaged ({fault}): start a new run")

    def _walk(self, judge: Judge) -> tuple[RunObjects, RecordJudge]:
        """Return the objects to audit, and what says which of their lines are recorded."""
        run = self._run
        if self._filling is not None:
            return self._filling.walk(run, self._engine, self._reader, judge, self.tally)
        facts = self._facts
        if run.settings.keep is not None and run.earlier is not None:
            last = LastRunFacts(
                run.earlier,
                run.settings,
                run.facts,
                reused_groups(run.judging, ledger=run.has_ledger),
                run.plan.now,
                run.clock,
                start_after=run.remaining.start_after,
                tidies=run.range.id == run.plan.ranges[0].id,  # once in a run
            )
            facts.append(last)
        values = bool(facts) and judges_values(run.judging)
        if run.inventory is not None:
            facts.append(run.inventory)
        walk = ObjectWalk(self._listing, facts, self._reader, judge, run.thread.run, values=values)
        return walk, RecordJudge(judge, self.tally)

    async def _open_engine(self, stack: AsyncExitStack) -> Engine:
        """Claim the range, and open the engine."""
        run = self._run
        async with run.outer_stop.flight() as limit:
            await run.thread.run(self.segment.prepare)
            if run.writes_plan:
                await run.thread.run(run.places.store.put, f"{self.segment.path}/{PLAN}", run.data)
            engine = await stack.enter_async_context(run.engines((run.settings.engine, run.connection)))
        if limit.expired():
            raise silent(self.segment.uri, run.outer_stop)
        run.caller.permits.assume_open(engine.open_connections)
        return engine

    def _open_recorder(self, judge: RecordJudge, comparison: LastRunComparison, stack: AsyncExitStack) -> Recorder:
        run, bucket, settings = self._run, self._run.target.bucket, self._run.settings
        dispatcher: Dispatcher | None = None
        fixity = None
        if run.places.ledger is not None:
            if run.places.queue is not None:
                dispatcher = Dispatcher(run.places.queue, run.run_id, bucket, settings.algorithms)
                dispatcher.add(run.state.unsent if run.state else ())
            from auditor.audit.hashing import open_fixity  # thirty modules, for audits with a ledger alone

            fixity = open_fixity(run, run.places.ledger, self._engine, stack)
        exceptions = RunExceptions(settings, bucket, run.plan.now, self.tally)
        values = settings.keep_metadata
        return Recorder(
            judge=judge,
            comparison=comparison,
            lines=LineWriter(self.segment, self.tally, exceptions, self.rollups, keeps_values=values),
            fixity=fixity,
            dispatcher=dispatcher,
            calls=run.caller.counts,
            io=run.thread.run,
        )

    def _compare_with_last(self) -> LastRunComparison:
        """Begin to compare the range with the last complete run. Blocks."""
        run = self._run
        if run.earlier is not None:
            run.earlier.prepare()
        start = run.saved_key
        done: list[str | None] = [None]
        if start is not None and run.target.versions:
            written = RunReader(run.places.store, run.target.bucket, run.run_id)
            done = [line.version_id for line in written.of_key(start, run.range.id)]
        judged = judged_by(run.rules, run.judging)
        comparison = LastRunComparison(began_at(run.run_id), self.tally, run.earlier, judged, run.plan, run.target)
        comparison.open(start, done)
        return comparison

    async def _gather(self, recorder: Recorder) -> bool:
        run = self._run
        calls = calls_per_object(run.settings, run.judging, self._filling)
        async with task_group() as group:
            ticker = group.create_task(self._tick())
            ended = await gather(
                self._objects.pages(run.remaining),
                self._objects,
                run.caller,
                run.stop,
                recorder.record,
                calls_per_object=calls + (run.keys is not None),
                whole_keys=run.target.versions,
            )
            ticker.cancel()
        return ended

    async def _tick(self) -> None:
        """Write each part that has been open for long, and estimate the number of objects from the last run."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            latest, self._latest = self._latest, None
            if latest is not None:
                self.expected = await self._run.thread.run(listed_by, latest)
            self.segment.check_due()
            await self._run.thread.run(self.segment.flush)

    async def _send_rest(self, recorder: Recorder) -> bool:
        """Send the last objects to the queue. Return False if it did not answer in time after a stop."""
        async with self._run.outer_stop.sending() as limit:
            await recorder.send_rest()
        if limit.expired():
            left = counted(self.tally.hashing["pending"], "object")
            self.unsent = f"the queue did not answer: the run sends {left} without a digest when it is resumed"
            log.warning("%s", self.unsent)
        return not limit.expired()


def _state(run: RunContext, range_id: str) -> Checkpoint | None:
    reader = RunReader(run.places.store, run.plan.target.bucket, run.run_id)
    state = reader.checkpoint(range_id)
    check_rollups(reader, range_id, state)
    return state


def _policies(run: RunContext) -> StoredPolicies:
    return range_policies(run.places.store, run_path(run.plan.target.bucket, run.run_id), run.run_id, run.range.id)


async def _with_inventory(run: RunContext, stack: AsyncExitStack, *, alone: bool) -> RunContext:
    """Return the context with the facts of an S3 Inventory. If the settings allow that, it may have none."""
    from auditor.audit.sources.inventory import open_inventory  # imports csv and tempfile

    try:
        if alone:
            opening = open_inventory(run)
        else:
            from auditor.audit.sources.inventory_by_range import open_range_rows

            opening = open_range_rows(run, run.range.id)
        return replace(run, inventory=await stack.enter_async_context(opening))
    except (InventoryMissing, InventoryError, OutputError) as none:
        if not run.settings.live_without_inventory:
            raise
        log.warning("%s is audited by calls: %s", visible(run.target.uri), none)
        return replace(run, without_inventory=str(none))
