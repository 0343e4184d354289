"""Audit one target: begin a run, work on its ranges in this process or in several, and conclude it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.begin_run import BegunRun, Division, RunStart, begin_run, calls_per_object, open_run
from auditor.audit.conclude_run import Concluded, RunConclusion, RunSums, added_ranges, conclude_run
from auditor.audit.limits import Limits, check_budget, permits_of
from auditor.audit.run_context import AuditProcess, FolderThread, RunContext, silent
from auditor.audit.work_range import RangeWork, open_range
from auditor.config.resources import Resources, caller_of, connection_to
from auditor.config.settings import Settings
from auditor.errors import RunComplete
from auditor.hashing.limits import STREAMS
from auditor.model.rollup import RollUps
from auditor.model.summary import Changes, Resume, Summary
from auditor.model.target import Target
from auditor.progress import RunCounts, Snapshot
from auditor.runs.paths import checkpoint_name, new_run_id, parse_run_id, range_keys_name, run_path
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.runs.segment import PART_LINES
from auditor.runs.stores.base import LockingStore
from auditor.s3.engines.pool import EnginePool
from auditor.s3.rate import RateLimit
from auditor.text import counted, visible

if TYPE_CHECKING:
    from auditor.audit.fill import Filling
    from auditor.audit.jobs import RangeProcesses


LOCK: Final = "ranges"
"""The name of the lock that a process holds in a directory while it works on a run of several ranges."""


class _TargetAudit:
    """The part that the audits of a target and of a range have in common: the means to make calls, and the counts."""

    def __init__(
        self,
        target: Target,
        settings: Settings,
        places: Resources,
        stop: Stop,
        clock: Callable[[], float],
        part_lines: int,
    ) -> None:
        self._target = target
        self._part_lines = part_lines
        ceiling, permits = permits_of(settings)
        spare = (settings.streams or STREAMS) if settings.hash else 0  # for an object that several streams read
        rate = RateLimit(settings.max_rate)
        self._process = AuditProcess(
            settings=settings,
            places=places,
            stop=Stop(stop),  # a stop of its own: if --max-calls ends this run, the other runs continue
            outer_stop=stop,
            thread=FolderThread(stop),
            clock=clock,
            connection=connection_to(target.bucket, settings, ceiling + spare),
            engines=places.engines,
            caller=caller_of(target.bucket, settings, rate, permits, ceiling=places.ceiling, limits_cost=True),
            rate=rate,
            concurrency=ceiling,
        )
        self._started = time.monotonic()
        self._work: RangeWork | None = None

    @asynccontextmanager
    async def _with_engines(self) -> AsyncIterator[AuditProcess]:
        """Open a pool of engines for the `with` block. The thread of the run folder ends with it, too."""
        try:
            async with EnginePool(self._process.places.engines) as engines:
                yield replace(self._process, engines=engines.lend)
        finally:
            self._process.thread.end()

    async def _record_range(self, run: RunContext) -> RangeWork:
        """Work on one of several ranges, and save how far it is. run: the context for the range."""
        self._work = work = RangeWork(run, part_lines=self._part_lines)
        async with work.opened() as recorder:
            await work.record(recorder)
            await run.thread.save(run.uri, work.save_end)
        return work

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def left(self) -> Limits:
        """The calls and dollars that --max-calls and --max-cost still allow."""
        return Limits.left(self._process.caller)

    @property
    def unsent(self) -> str | None:
        """A sentence on the objects that the queue did not take before the end; None if it took all."""
        return self._work.unsent if self._work else None

    @property
    def counts(self) -> RunCounts:
        """The present counts of the range in work."""
        if self._work is None:
            return RunCounts(throttled=self._process.caller.counts["throttled"])
        coverage, findings = self._work.tally.coverage, sum(self._work.tally.findings.values())
        return RunCounts(coverage["listed"], findings, coverage["undecided"], self._process.caller.counts["throttled"])


class Audit(_TargetAudit):
    """Audits one target. Call run() once.

    filling: the run to fill; None to list the target. jobs: number of processes; None for this one alone. began: called
    with the run's ID once the run folder exists. run_id: ID of an earlier run of the same target, to take it up; None
    for a new run. resume: False to begin a new run with the ID `run_id`. hands_on: True if the next invocation
    continues a stopped run, so that this one writes no summary. division: how to cut a new run into ranges; None for
    one range, or for some for each process. clock: returns the present time, in seconds since 1970.
    """

    def __init__(
        self,
        target: Target,
        settings: Settings,
        places: Resources,
        stop: Stop,
        *,
        filling: Filling | None = None,
        jobs: int | None = None,
        began: Callable[[str], None] | None = None,
        run_id: str | None = None,
        resume: bool = True,
        hands_on: bool = False,
        division: Division | None = None,
        part_lines: int = PART_LINES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(target, settings, places, stop, clock, part_lines)
        self._jobs = jobs or 1
        self._began = began
        self._hands_on = hands_on
        self.run_id = run_id or new_run_id(datetime.fromtimestamp(clock(), UTC), secrets.token_bytes(3))
        if division is None and self._jobs > 1:
            from auditor.audit.jobs import RANGES  # few audits have several processes

            division = Division(RANGES * self._jobs)
        self._start = RunStart(
            target=target,
            run_id=self.run_id,
            resumed=resume and run_id is not None,
            named=run_id is not None,
            filling=filling,
            division=division and replace(division, progress=self._note_planned),
        )
        self._processes: RangeProcesses | None = None
        self._before = 0
        """Number of objects in the ranges that are complete."""
        self._planned: float | None = None
        """The number of keys that planning has estimated so far."""
        self._expected: int | None = None
        self._begun = False
        self._left_range = False
        """True if a range of several came further, and is not in work any more."""
        self.rollups: RollUps
        """The roll-ups of the run, once run() has ended it."""

    async def run(self) -> Summary:
        """Audit the target, write the summary to the run folder, and return it. After a RunError, written parts stay.

        Raises RunStopped if a server does not answer in time after a stop, so that the run cannot begin or be saved.
        """
        async with self._with_engines() as process, AsyncExitStack() as stack:
            if self._jobs > 1:
                await self._start_processes(stack)
            begun = await begin_run(process, self._start)
            self.run_id = begun.context.run_id
            self._target = begun.context.plan.target
            self._begun = True
            return await self._worked(begun, stack)

    async def begin(self) -> RunPlan:
        """Begin or take up the run, for other processes that work on its ranges, and return its run.json. Raises the
        errors of begin_run().
        """
        async with self._with_engines() as process:
            return (await begin_run(process, self._start)).context.plan

    async def _start_processes(self, stack: AsyncExitStack) -> None:
        """Start the processes: they import while this one begins the run. A run that is taken up may have few ranges
        left, so that its processes start later.
        """
        from auditor.audit.jobs import RangeProcesses

        self._processes = RangeProcesses(self._process.settings, self._jobs, self._process.stop)
        stack.push_async_callback(self._processes.close)
        if not self._start.resumed:
            await self._processes.start()

    async def _worked(self, begun: BegunRun, stack: AsyncExitStack) -> Summary:
        """Work on the ranges that are not complete, and conclude the run."""
        run = begun.context
        if self._processes is None and not run.plan.divided and not begun.progress[0].complete:
            return await self._alone(begun)
        waiting = [one.id for one in begun.progress if not one.complete]
        self._before = sum(one.listed for one in begun.progress if one.complete)
        self._expected = run.plan.keys if run.plan.exact else None
        if isinstance(run.places.store, LockingStore):
            folder = run_path(run.target.bucket, run.run_id)
            stack.callback(await run.thread.run(run.places.store.hold, folder, LOCK))
        self._note_begun()
        if self._processes is not None:
            await self._processes.work(run, waiting, begun.left, self._part_lines)
            return await self._concluded(self._processes.reason)
        complete = True
        for one in waiting:
            complete = not run.stop and await self._range(run, one)
            if not complete:
                break
        if not complete and self._hands_on and run.outer_stop:
            reader = RunReader(run.places.store, run.plan.target.bucket, run.run_id)
            sums = await run.thread.save(run.uri, partial(added_ranges, reader, run.plan, run.settings))
            summary: Summary = await run.thread.run(self._conclusion(run).summary, sums, Changes())
            return summary
        return await self._concluded(run.stop.reason)

    async def _range(self, run: RunContext, range_id: str) -> bool:
        """Work on one of several ranges. Return True if it is complete."""
        async with open_range(run, range_id, alone=False) as ranged:
            work = await self._record_range(ranged)
        self._left_range |= work.complete or work.progressed
        if work.unsent is None:
            self._before += work.tally.coverage["listed"]
            self._work = None
        return work.complete

    async def _alone(self, begun: BegunRun) -> Summary:
        """Work on the only range of a run, and conclude the run from memory."""
        run, thread = begun.context, begun.context.thread
        async with open_range(run, run.plan.ranges[0].id, alone=True) as run:
            self._work = work = RangeWork(
                run, filling=self._start.filling, part_lines=self._part_lines, latest=begun.latest, alone=True
            )
            async with work.opened(self._note_begun) as recorder:
                await work.record(recorder)
                sums = self._sums(run, work)
                conclusion = self._conclusion(run)
                if self._hands_on and bool(run.outer_stop) and not work.complete:
                    summary: Summary = await thread.run(conclusion.summary, sums, Changes())
                    await thread.save(run.uri, work.save_end)
                    return summary
                files = _files_of(run) if run.fresh else None
                end = partial(
                    conclusion.finish, sums, save=work.save_alone, write_first=work.resumed, checkpoints=files
                )
                done: Concluded = await thread.save(run.uri, end)
        self.rollups = done.rollups
        return done.summary

    def _sums(self, run: RunContext, work: RangeWork) -> RunSums:
        work.sums.calls["list"] += run.plan.calls
        return RunSums(
            work.sums,
            work.rollups,
            work.segment.position,
            work.segment.sealed_parts,
            policies=dict(run.keys.policies) if run.keys else {},
            holes=[] if work.complete else ["the rest of the listing"],
            lacks_acls=work.lacks_acls,
            unseen=tuple(work.unseen()),
        )

    def _conclusion(self, run: RunContext) -> RunConclusion:
        filling, settings = self._start.filling, run.settings
        algorithms = settings.algorithms if run.has_ledger else None
        return RunConclusion(
            run.plan,
            run.data,
            settings,
            run.places,
            algorithms=algorithms if filling is None else filling.algorithms,
            seconds=self._run_seconds,
            is_latest=filling is None or filling.is_latest,
            reason=run.stop.reason,
            earlier=run.earlier,
        )

    def _run_seconds(self) -> float:
        """Return the duration of the run: of one that was taken up, the time since it began. The next run with `keep`
        takes this for the time in which the run may have read facts.
        """
        seconds = self._seconds()
        if self._start.resumed:
            seconds = max(seconds, self._process.clock() - parse_run_id(self.run_id).timestamp())
        return seconds

    async def _concluded(self, reason: str | None) -> Summary:
        """Conclude the run from its folder. Raises RunStopped if that takes too long after a stop."""
        settings, places, stop = self._process.settings, self._process.places, self._process.outer_stop
        async with stop.saving():
            done = await asyncio.to_thread(
                conclude_run, self._target, self.run_id, settings, places, seconds=self._run_seconds, reason=reason
            )
            self.rollups = done.rollups
            return done.summary
        raise silent(places.store.uri(), stop)

    @property
    def left(self) -> Limits:
        """The calls and dollars that --max-calls and --max-cost still allow."""
        return super().left if self._processes is None or not self._begun else self._processes.left

    @property
    def unsent(self) -> str | None:
        """Sentences on the objects that the queue did not take before the end; None if it took all."""
        return super().unsent if self._processes is None else "; ".join(self._processes.unsent) or None

    @property
    def saved(self) -> Resume | None:
        """The point from which the run can be continued; None if this process saved no progress."""
        work = self._work
        if not self._left_range and (work is None or not work.progressed):
            return None
        return Resume(self.run_id, work.segment.saved_key if work else None, self._process.stop.reason)

    def snapshot(self) -> Snapshot:
        """Return the present counts, for a progress line."""
        counts = self.counts if self._processes is None else self._processes.counts
        large = self._work is not None and self._work.judges_large_policy
        words = f"{counts.words}{', judging a large policy' if large else ''}"
        planning = self._planned is not None and not self._begun
        one = self._work.expected if self._work and not self._before else None
        return Snapshot(
            what=visible(self._target.uri),
            objects=self._before + counts.listed,
            seconds=self._seconds(),
            detail=f"dividing about {counted(round(self._planned or 0), 'key')}" if planning else words,
            expected=self._expected or one,
            heard=self._planned is not None,
        )

    def _note_planned(self, keys: float) -> None:
        self._planned = keys

    def _note_begun(self) -> None:
        if self._began is not None:
            self._began(self.run_id)


class RangeAudit(_TargetAudit):
    """Audits one range of a run that has begun, or continues it. Call run() once.

    run_id, range_id: IDs of the run and of the range. target: of the whole run. settings: those with which the run was
    begun; max_rate, max_calls and max_cost are the range's share.
    """

    def __init__(
        self,
        run_id: str,
        range_id: str,
        target: Target,
        settings: Settings,
        places: Resources,
        stop: Stop,
        *,
        part_lines: int = PART_LINES,
    ) -> None:
        super().__init__(target, settings, places, stop, time.time, part_lines)
        self._run_id = run_id
        self._range_id = range_id

    async def run(self) -> Resume | None:
        """Audit the range. Return None if it is complete, else how far it came.

        Raises, besides the errors of each audit, RunComplete for a complete range, RunTaken if another process writes
        it, and LimitTooLow if its share of a limit is too little for one object.
        """
        async with self._with_engines() as process:
            async with process.outer_stop.flight() as limit:
                run: RunContext = await process.thread.run(open_run, process, self._target, self._run_id)
            if limit.expired():
                raise silent(process.places.store.uri(), process.outer_stop)
            check_budget(run.caller, run.settings, 1 + calls_per_object(run.settings, run.judging))
            async with open_range(run, self._range_id, alone=False) as ranged:
                if ranged.state is not None and ranged.state.ended is not None:
                    raise RunComplete(
                        f"range {self._range_id} of run {self._run_id} is complete: there is nothing to resume"
                    )
                work = await self._record_range(ranged)
                return None if work.complete else Resume(self._run_id, work.segment.position, run.stop.reason)

    @property
    def progressed(self) -> bool:
        """True if a checkpoint with a further key was saved."""
        return self._work is not None and self._work.progressed


def _files_of(run: RunContext) -> list[str]:
    """Return the names of the files in checkpoint/ that a run of one range has written without a break."""
    range_id = run.range.id
    return [checkpoint_name(range_id), *([range_keys_name(range_id)] if run.keys is not None else ())]
