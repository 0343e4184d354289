"""Read, judge and record the objects of a run that has begun, and end the run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

from auditor.aio.groups import task_group
from auditor.audit.begin import listed_by
from auditor.audit.compare_with_last import LastRunComparison
from auditor.audit.context import RunContext
from auditor.audit.digests import dispatcher_of
from auditor.audit.ending import RunEnding
from auditor.audit.excepting import RunExceptions
from auditor.audit.folder_thread import silent
from auditor.audit.judged_by import judge_of
from auditor.audit.kind import RunKind
from auditor.audit.line_writer import LineWriter
from auditor.audit.record_judge import RecordJudge
from auditor.audit.recorder import Recorder
from auditor.audit.resume import begun_rollups
from auditor.audit.sources.walk import RunObjects
from auditor.model.dates import iso_date
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.reports.compare import judged_by
from auditor.reports.first_steps import JudgedFor
from auditor.rules.judge import Judge
from auditor.runs.folder import RunFolder
from auditor.runs.paths import began_at
from auditor.runs.reading import RunReader
from auditor.runs.tally import Tally
from auditor.s3.engines.base import Engine
from auditor.s3.gather import gather
from auditor.s3.object_facts import stand_in
from auditor.s3.object_reader import ObjectReader
from auditor.text import counted

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 1.0


class Gathering:
    """Reads, judges and records the objects of a run, and ends the run. Call run() once.

    tally: the counts of the run, from its checkpoint if it is resumed. hands_on: True if the next invocation continues
    a stopped run, so that this one writes no summary. part_lines: number of lines of a part's largest file at which the
    part ends. started: the time of the monotonic clock at which this process began. began: called once the run folder
    exists.
    """

    def __init__(
        self,
        run: RunContext,
        kind: RunKind,
        tally: Tally,
        *,
        hands_on: bool,
        part_lines: int,
        started: float,
        began: Callable[[], None],
    ) -> None:
        self._run = run
        self._kind = kind
        self._tally = tally
        self._hands_on = hands_on
        self._started = started
        self._began = began
        self._resumed = run.resumed
        self._lacks_acls = False
        self._latest = run.before.latest if run.before.expected is None else None
        self.expected = run.before.expected
        """Estimate of the number of objects of the target; None if there is none."""
        self.rollups: RollUps | None = None
        """The roll-ups of the run; None unless run() has ended it."""
        self.unsent: str | None = None
        """A sentence on the objects that the queue did not take before the end; None if it took all."""
        self._judged_at = iso_date(run.now)
        self._judge: Judge | None = None
        self._rollups = begun_rollups(run.before.state)
        trusted, versions = run.settings.trusted, run.target.versions
        self._rollups.count_kinds(JudgedFor(run.facts, trusted, versions, self._judged_at))
        self._folder = self._new_folder(part_lines)
        exceptions = RunExceptions(run.settings, run.target.bucket, run.now, tally)
        keeps_values = run.settings.keep_metadata
        self._lines = LineWriter(self._folder, tally, exceptions, self._rollups, keeps_values=keeps_values)
        self._first_saved = self._folder.saved_key

    @property
    def judges_large_policy(self) -> bool:
        """True if the bucket's policies are so large that judging them takes a while."""
        return self._judge is not None and self._judge.is_large

    @property
    def progressed(self) -> bool:
        """True if a checkpoint with a further key was saved."""
        return self._folder.saved_key != self._first_saved

    @property
    def saved_key(self) -> str | None:
        """The last key of the checkpoint that is in place."""
        return self._folder.saved_key

    def _new_folder(self, part_lines: int) -> RunFolder:
        run, kind, before = self._run, self._kind, self._run.before
        return RunFolder(
            run.places.store,
            run.target.bucket,
            run.run_id,
            kind.range_id,
            target=run.target,
            selection=kind.selection,
            rules_undecided=run.plan.undecided,
            tally=self._tally,
            hop=run.hop,
            state=before.state,
            part_lines=part_lines,
            fresh=not run.resumed,
            describe=kind.describer(run),
            describes=kind.describes,
            described=before.bucket_data,
            growing=run.keys is not None,
            previous=before.latest.run_id if before.latest else None,
            rollups=self._rollups,
        )

    async def run(self) -> Summary:
        """Gather and record the objects up to the end or to a stop, and return the summary.

        Raises RunStopped if a server does not answer in time after a stop.
        """
        run, state = self._run, self._run.before.state
        async with AsyncExitStack() as stack:
            stack.push_async_callback(run.thread.close, self._folder)
            engine = await self._open_engine(stack)
            judge = judge_of(run.settings, run.plan, run.facts, versions=run.target.versions, now=self._judged_at)
            self._judge = judge
            reader = ObjectReader(
                engine, run.caller, run.plan.ask, run.settings.algorithms, stand_in(run.facts), run.keys
            )
            objects, record_judge = self._kind.objects(run, engine, reader, judge, self._tally)
            recorder = await self._open_recorder(engine, record_judge, stack)
            self._began()
            if self._kind.records_bucket and (state is None or not state.begun):
                recorder.record_bucket()
            ended = await self._record(engine, objects, recorder)
            self._lacks_acls = reader.lacks_acls
            return await self._end(recorder, ended)

    async def _open_engine(self, stack: AsyncExitStack) -> Engine:
        """Claim the run folder, and open the engine."""
        run = self._run
        async with run.outer_stop.flight() as limit:
            await run.thread.run(self._folder.prepare)
            engine = await stack.enter_async_context(run.engines((run.settings.engine, run.connection)))
        if limit.expired():
            raise silent(self._folder.uri, run.outer_stop)
        run.caller.permits.assume_open(engine.open_connections)
        return engine

    async def _open_recorder(self, engine: Engine, judge: RecordJudge, stack: AsyncExitStack) -> Recorder:
        run, bucket, settings = self._run, self._run.target.bucket, self._run.settings
        dispatcher = dispatcher_of(bucket, run.run_id, settings, run.places)
        if dispatcher is not None:
            dispatcher.add(run.before.state.unsent if run.before.state else ())
        fixity = None
        if run.places.ledger is not None:
            from auditor.audit.hashing import open_fixity  # thirty modules, for audits with a ledger alone

            fixity = open_fixity(run, run.places.ledger, engine, stack)
        comparison = await run.thread.run(_compare_with_last, run, self._kind, self._tally)
        return Recorder(
            judge=judge,
            comparison=comparison,
            lines=self._lines,
            fixity=fixity,
            dispatcher=dispatcher,
            calls=run.caller.counts,
            io=run.thread.run,
        )

    async def _record(self, engine: Engine, objects: RunObjects, recorder: Recorder) -> bool:
        """Gather and record the objects, and send those to hash. Return True if the listing reached its end, and all
        are sent. Before an error is raised, the objects gathered so far are saved.
        """
        run, folder = self._run, self._folder
        try:
            async with run.outer_stop.flight() as limit:
                ended = await self._gather(objects, recorder)
            sent = await self._send_rest(recorder)
            # If S3 throttled this run, the next run begins with fewer connections.
            engine.keep_idle(run.caller.permits.statistics().limit)
            if limit.expired():
                ended = False
                self._resumed |= run.target.versions  # the report then names only lines that stay
                recorder.count_calls()
                await run.thread.save(folder, lambda: folder.save(whole_key=False))
        except BaseException:
            # In a run over versions the last key may lack versions.
            async with run.outer_stop.saving():
                await run.thread.run(lambda: folder.save(whole_key=False))
            raise
        return ended and sent

    async def _gather(self, objects: RunObjects, recorder: Recorder) -> bool:
        run = self._run
        async with task_group() as group:
            ticker = group.create_task(self._tick())
            ended = await gather(
                objects.pages(run.remaining),
                objects,
                run.caller,
                run.stop,
                recorder.record,
                calls_per_object=self._kind.calls_per_object(run.plan, run.settings) + (run.keys is not None),
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
            self._folder.check_due()
            await self._run.thread.run(self._folder.flush)

    async def _send_rest(self, recorder: Recorder) -> bool:
        """Send the last objects to the queue. Return False if it did not answer in time after a stop."""
        async with self._run.outer_stop.sending() as limit:
            await recorder.send_rest()
        if limit.expired():
            left = counted(self._tally.hashing["pending"], "object")
            self.unsent = f"the queue did not answer: the run sends {left} without a digest when it is resumed"
            log.warning("%s", self.unsent)
        return not limit.expired()

    async def _end(self, recorder: Recorder, ended: bool) -> Summary:
        run, kind = self._run, self._kind
        ending = RunEnding(
            run,
            recorder,
            complete=ended,
            resumed=self._resumed,
            lacks_acls=self._lacks_acls,
            algorithms=kind.algorithms(run),
            more_unseen=tuple(kind.unseen(run, self._tally)),
            started=self._started,
        )
        summary = await kind.end(ending, hands_on=self._hands_on and bool(run.outer_stop) and not ended)
        self.rollups = ending.rollups
        return summary


def _compare_with_last(run: RunContext, kind: RunKind, tally: Tally) -> LastRunComparison:
    """Begin to compare the run with the last complete one. Blocks. tally: receives the counts of changes."""
    if run.earlier is not None:
        run.earlier.prepare()
    start = run.saved_key
    done: list[str | None] = [None]
    if start is not None and run.target.versions:
        written = RunReader(run.places.store, run.target.bucket, run.run_id)
        done = [line.version_id for line in written.of_key(start, kind.range_id)]
    judged, file = judged_by(kind.rules, run.plan), kind.bucket_file(run, 0)
    comparison = LastRunComparison(began_at(run.run_id), tally, run.earlier, judged, file, run.target)
    comparison.open(start, done)
    return comparison
