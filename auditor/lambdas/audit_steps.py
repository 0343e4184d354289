"""The audit function as the steps of the state machine: begin the runs of a start, audit a range, conclude the runs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import to_builtins
from msgspec.structs import replace

from auditor.audit.audit_run import RangeAudit
from auditor.audit.limits import rate_share
from auditor.audit.range_progress import active_ranges, range_progress
from auditor.config.resources import with_ledger
from auditor.config.values import MIXED
from auditor.errors import AuditorError, RunComplete, RunError, RunMissing, RunStopped, RunTaken
from auditor.estate.start import each
from auditor.lambdas.deadline import in_time
from auditor.lambdas.event import MachineStep, RangePair
from auditor.lambdas.invocation_frame import MOST_FRUITLESS, FunctionCall
from auditor.lambdas.lease import BucketLease
from auditor.lambdas.scale import Scale
from auditor.lambdas.start import FunctionStart, StartBusyError, StartTarget, TargetPhase
from auditor.lambdas.start_work import StartWork
from auditor.lambdas.target_run import TargetEnd, pairs_left
from auditor.logs import bound
from auditor.model.summary import Summary
from auditor.runs.reading import RunReader
from auditor.runs.run_files import PlannedRange, RunPlan, load_plan
from auditor.text import counted

log = logging.getLogger(__name__)

MOST_PAIRS: Final = 10_000
"""Number of ranges from which no further run is begun: these wait for the next round. It is the number of children that
a Distributed Map runs at once (Step Functions quotas)."""
MOST_BYTES: Final = 200_000
"""Largest size in bytes of an answer. A state of Step Functions has 256 KiB at most."""
_ANSWERED: Final = 20
"""Largest number of sentences in an answer."""
_SENTENCE: Final = 1_000
"""Largest number of characters of a sentence in an answer."""


class AuditStep(StartWork):
    """One step of the state machine. batch_rows: number of objects in a batch manifest; None for the usual one."""

    def __init__(self, call: FunctionCall, step: MachineStep, batch_rows: int | None = None) -> None:
        super().__init__(call, machine=True)
        self._step = step
        self._batch_rows = batch_rows

    async def answer(self) -> dict[str, Any]:
        """Do the step, and return its answer.

        begin: `{"event", "pairs", "at_once", "next": "begin" | "ranges" | "conclude"}`; the machine continues with the
        event in the answer. range: `{"again", "fruitless"}`; while `again` is true, the machine sends the step again.
        conclude: `{"next": "conclude" | "wait" | "complete" | "incomplete", "start", "runs": [SUMMARY, ..], "left",
        "estate"}`.
        """
        action = self._step.action
        steps = {"begin": self._begin, "range": self._range, "conclude": self._conclude}
        silent = (
            f"the step {action} did not end before the deadline, because a server did not answer: the state machine"
            f" continues with the event {self._invocation.again_with(self._invocation.start_id)}"
        )
        return await in_time(steps[action](), self._stop.all(), silent)

    async def _begin(self) -> dict[str, Any]:
        """Begin the run of each target that waits, as far as this invocation comes, and write the ranges."""
        try:
            start = await self._take()
        except StartBusyError as busy:
            return self._begun(busy.start)
        if start.state.ended:
            return self._begun(start.id)
        with bound(start=start.id):
            await self._open(start)
            pairs: list[RangePair] = []
            again = False

            async def one(place: int) -> None:
                nonlocal again
                if len(pairs) < MOST_PAIRS:
                    done = await self._begin_one(place)
                    again |= done.again
                    pairs.extend(done.pairs)

            for place in start.in_phase(TargetPhase.BEGUN):  # of an earlier invocation of this round
                try:
                    pairs += await asyncio.to_thread(self._left_of, start.targets[place])
                except AuditorError as error:
                    await self._failed(place, error)
            waiting = sorted(start.in_phase(TargetPhase.WAITING), key=lambda place: start.targets[place].silent)
            await each(waiting, self._at_once, self._stop, one)
            await self._save()
            again |= bool(self._stop) and len(pairs) < MOST_PAIRS and bool(start.in_phase(TargetPhase.WAITING))
            if again or not pairs:
                return self._begun(start.id, "begin" if again else "conclude")
            return self._begun(start.id, "ranges", len({one.bucket for one in pairs}), await self._listed(pairs))

    def _begun(self, start: str, follows: str = "conclude", buckets: int = 0, pairs: object = ()) -> dict[str, Any]:
        """Return the answer of the step. buckets: number of buckets with ranges. pairs: the ranges, or their file."""
        settings = self._call.settings
        at_once = Scale.of(self._call.environ).functions(settings.max_rate, buckets, lists=settings.source == MIXED)
        return {"event": self._invocation.event_with(start), "pairs": pairs or [], "at_once": at_once, "next": follows}

    async def _listed(self, pairs: Sequence[RangePair]) -> object:
        """Return the key of the file with the ranges; or the ranges themselves, if the store is a file system, which
        Step Functions does not read.
        """
        found: list[Any] = to_builtins(pairs)
        if self._store.bucket is not None:
            return await asyncio.to_thread(self._start.write_pairs, found)
        if len(json.dumps(found)) > MOST_BYTES:
            raise RunError(
                f"{counted(len(found), 'range')} are too many for a shared file system, because a state of Step"
                " Functions has 256 KiB: name fewer buckets in one event, or use a reports bucket"
            )
        return found

    async def _begin_one(self, place: int) -> TargetEnd:
        start = self._start
        with bound(bucket=start.targets[place].bucket):
            try:
                done = await self._run_of(place).begin()
            except RunStopped as silent:
                log.warning("%s", silent)
                return TargetEnd(again=start.note_silence(place, MOST_FRUITLESS, str(silent)))
            except AuditorError as error:
                ended = isinstance(error, RunComplete)  # a person named the run
                start.note(place, TargetPhase.ENDED if ended else TargetPhase.FAILED, sentence=str(error))
                return TargetEnd()
            await self._note(place, done)
            return done

    def _left_of(self, one: StartTarget) -> Sequence[RangePair]:
        """Return the ranges that are left of a run that has begun. Blocks."""
        plan = load_plan(self._store, one.bucket, one.run or "")
        return () if plan is None else pairs_left(self._store, plan, one.owner)

    async def _range(self) -> dict[str, Any]:
        """Audit one range until it is complete or the deadline is near."""
        pair = self._step.pair
        assert pair is not None  # read_step() has checked it
        with bound(bucket=pair.bucket, run=pair.run, range=pair.range):
            plan = await asyncio.to_thread(load_plan, self._store, pair.bucket, pair.run)
            if plan is None:
                raise RunMissing(f"run {pair.run} has no plan of its ranges: start the audit again")
            if await asyncio.to_thread(self._is_over, plan, plan.range(pair.range)):
                return {"again": False, "fruitless": 0}
            lease = BucketLease(self._store, plan.target, self._invocation.start_id)
            await asyncio.to_thread(lease.renew, pair.run, self._call.context.remaining())
            again, progressed = await self._audited(plan, pair)
            fruitless = 0 if not again or progressed else self._step.fruitless + 1
            if fruitless > MOST_FRUITLESS:
                raise RunError(f"the audit of range {pair.range} made no progress in {fruitless} invocations")
            log.info("range %s %s", pair.range, "continues in the next invocation" if again else "has ended")
            return {"again": again, "fruitless": fruitless}

    async def _audited(self, plan: RunPlan, pair: RangePair) -> tuple[bool, bool]:
        """Audit the range, with its share of the ceiling. Return True if the next invocation continues it, and True if
        it came further.
        """
        active = await asyncio.to_thread(active_ranges, self._store, plan, self._step.at_once)
        settings = self._settings_of(pair.owner)
        settings = replace(settings, max_rate=rate_share(settings.max_rate, active))
        audit: RangeAudit | None = None
        try:
            async with with_ledger(self._call.stores, settings) as resources:
                audit = RangeAudit(pair.run, pair.range, plan.target, settings, resources, self._stop)
                resume = await audit.run()
                again = resume is not None and bool(self._stop)  # a limit of calls or dollars ends it
        except RunComplete:  # the answer of an earlier invocation was lost
            again = False
        except RunStopped as error:
            log.warning("%s: the range continues from its last checkpoint", error)
            again = True
        return again, audit is not None and audit.progressed

    def _is_over(self, plan: RunPlan, one: PlannedRange) -> bool:
        """True if the range or the run is complete, as after an answer that was lost. Blocks."""
        complete = RunReader(self._store, plan.target.bucket, plan.run).complete
        return complete or next(range_progress(self._store, replace(plan, ranges=(one,)))).complete

    async def _conclude(self) -> dict[str, Any]:
        """Conclude the run of each target, and then the start."""
        try:
            start = await self._take()
        except StartBusyError as busy:
            return _concluded(busy.start, "wait", [str(busy)])
        if start.state.ended:
            return await asyncio.to_thread(self._before, start)
        with bound(start=start.id):
            await self._open(start)
            for place in start.in_phase(TargetPhase.BEGUN):
                ended = not self._stop and await self._conclude_one(place)
                if start.several or not ended:
                    await self._save()
                if not ended:
                    return _concluded(start.id, "conclude")
            waiting = [start.targets[place] for place in start.in_phase(TargetPhase.WAITING)]
            if waiting and not start.too_long:
                await self._save()
                return _concluded(start.id, "wait", [one.sentence for one in waiting if one.sentence])
            for place, one in zip(start.in_phase(TargetPhase.WAITING), waiting, strict=True):
                start.note(place, TargetPhase.FAILED, sentence=f"{one.uri} was not audited: {one.sentence}")
            runs = await self._end()
            if self._account is None and (failed := len(start.in_phase(TargetPhase.FAILED))):
                self._call.measure({"RunsFailed": failed})
            await self._save_end(runs)
            return _end_of(start, runs, None if self._report is None else self._report.to_dict())

    async def _conclude_one(self, place: int) -> bool:
        """Conclude one run. Return False if that takes a further invocation."""
        one = self._start.targets[place]
        with bound(bucket=one.bucket, run=one.run):
            try:
                await self._note(place, await self._run_of(place).conclude(self._batch_rows))
            except RunStopped as stopped:
                log.info("%s", stopped)
                return False
            except RunTaken as taken:  # another start continues the run
                self._start.note(place, TargetPhase.WAITING, sentence=str(taken))
            except AuditorError as error:
                await self._failed(place, error)
            return True

    async def _failed(self, place: int, error: AuditorError) -> None:
        """Note the failure of a run that has begun, with the event that resumes it, and free its bucket."""
        one, run = self._start.targets[place], self._start.wanted(place)
        log.error("the run cannot be concluded: %s", error)
        sentence = self._invocation.failure(error, one.target, run, self._start.id)
        self._start.note(place, TargetPhase.FAILED, sentence=sentence)
        await asyncio.to_thread(BucketLease(self._store, one.target, self._start.id).give_back, run)

    def _before(self, start: FunctionStart) -> dict[str, Any]:
        """Return the answer for a start that an earlier invocation has ended. Blocks."""
        runs = [RunReader(self._store, one.bucket, one.run).summary for one in start.targets[:_ANSWERED] if one.run]
        return _end_of(start, [one for one in runs if one is not None], None)


def _concluded(start: str, follows: str, left: Sequence[str] = ()) -> dict[str, Any]:
    """Return the answer of the step conclude. start: ID of the start. left: sentences on what is left or failed."""
    left = [one[:_SENTENCE] for one in left[:_ANSWERED]]
    return {"next": follows, "start": start, "runs": [], "left": left, "estate": None}


def _end_of(start: FunctionStart, runs: Sequence[Summary], estate: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the answer for a start that has ended. It has as many summaries as a state of Step Functions takes; the
    others are in their run folders.
    """
    failed = [one.sentence for one in start.targets if one.phase is TargetPhase.FAILED]
    answer = _concluded(start.id, "complete" if start.state.complete else "incomplete", failed)
    if estate is not None and len(json.dumps(estate)) <= MOST_BYTES // 2:
        answer["estate"] = dict(estate)
    size = len(json.dumps(answer))
    for one in runs:
        summary = one.to_dict()
        size += len(json.dumps(summary))
        if size > MOST_BYTES:
            break
        answer["runs"].append(summary)
    return answer
