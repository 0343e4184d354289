"""The audit function as the steps of the state machine: begin the runs of a start, audit a range, conclude the runs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from auditor.audit.audit_run import RangeAudit
from auditor.audit.conclude_run import Concluded, conclude_run
from auditor.audit.limits import rate_share
from auditor.audit.range_progress import range_progress
from auditor.config.resources import Resources, with_ledger
from auditor.config.values import MIXED
from auditor.errors import AuditorError, RunComplete, RunError, RunMissing, RunStopped, RunTaken
from auditor.estate.start import each
from auditor.lambdas.audit_target import TargetEnd, pairs_left, written_end
from auditor.lambdas.deadline import MARGIN_SECONDS
from auditor.lambdas.event import MachineStep, RangePair
from auditor.lambdas.invocation_frame import FunctionCall
from auditor.lambdas.lease import BucketLease
from auditor.lambdas.machine import MOST_FRUITLESS
from auditor.lambdas.scale import Scale
from auditor.lambdas.start import FunctionStart, StartBusyError, StartTarget, TargetPhase, seconds_since
from auditor.lambdas.start_work import StartWork
from auditor.logs import bound
from auditor.model.summary import Summary
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan, load_plan
from auditor.runs.stores.base import Store
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
        self._invocation = call.invocation
        self._stop = call.stop
        self._batch_rows = batch_rows

    async def answer(self) -> dict[str, Any]:
        """Do the step, and return its answer.

        begin: `{"event", "pairs", "at_once", "next": "begin" | "ranges" | "conclude"}`; the machine continues with the
        event in the answer. range: `{"again", "fruitless"}`; while `again` is true, the machine sends the step again.
        conclude: `{"next": "conclude" | "wait" | "complete" | "incomplete", "start", "runs": [SUMMARY, ..], "left",
        "estate"}`.
        """
        answer: dict[str, Any] | None = None
        async with self._stop.all() as limit:
            match self._step.action:
                case "begin":
                    answer = await self._begin()
                case "range":
                    answer = await self._range()
                case _:
                    answer = await self._conclude()
        if limit.expired() or answer is None:
            again = self._invocation.again_with(self._invocation.start or self._invocation.start_id)
            raise RunStopped(
                f"the step {self._step.action} did not end before the deadline, because a server did not answer: the"
                f" state machine continues with the event {again}"
            )
        return answer

    async def _begin(self) -> dict[str, Any]:
        """Begin the run of each target that waits, as far as this invocation comes, and write the ranges."""
        try:
            start = await self._take()
        except StartBusyError as busy:
            return self._begun(busy.start, [], "conclude")
        if start.ended:
            return self._begun(start.id, [], "conclude")
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
                return self._begun(start.id, [], "begin" if again else "conclude")
            return self._begun(start.id, pairs, "ranges", await self._listed(pairs))

    def _begun(self, start: str, pairs: Sequence[RangePair], follows: str, listed: object = None) -> dict[str, Any]:
        buckets, settings = len({one.bucket for one in pairs}), self._call.settings
        scale = Scale.of(self._call.environ)
        at_once = scale.functions(settings.max_rate, buckets, lists=settings.source == MIXED)
        return {"event": self._invocation.event_with(start), "pairs": listed or [], "at_once": at_once, "next": follows}

    async def _listed(self, pairs: Sequence[RangePair]) -> object:
        """Return the key of the file with the ranges; or the ranges themselves, if the store is a file system, which
        Step Functions does not read.
        """
        if self._store.bucket is not None:
            return await asyncio.to_thread(self._start.write_pairs, pairs)
        found = [one.to_dict() for one in pairs]
        if len(json.dumps(found)) > MOST_BYTES:
            raise RunError(
                f"{counted(len(found), 'range')} are too many for a shared file system, because a state of Step"
                " Functions has 256 KiB: name fewer buckets in one event, or use a reports bucket"
            )
        return found

    async def _begin_one(self, place: int) -> TargetEnd:
        with bound(bucket=self._start.targets[place].bucket):
            try:
                done = await self._audit_of(place).begin()
            except RunComplete as complete:  # a person named the run
                self._start.note(place, TargetPhase.ENDED, sentence=str(complete))
                return TargetEnd()
            except RunStopped as silent:
                log.warning("%s", silent)
                self._start.note_silence(place, MOST_FRUITLESS, str(silent))
                return TargetEnd(again=self._start.targets[place].phase is TargetPhase.WAITING)
            except AuditorError as error:
                self._start.note(place, TargetPhase.FAILED, sentence=str(error))
                return TargetEnd()
            await self._note(place, done)
            return done

    def _left_of(self, one: StartTarget) -> Sequence[RangePair]:
        """Return the ranges that are left of a run that has begun. Blocks."""
        plan = load_plan(self._store, one.bucket, one.run or "")
        return () if plan is None else pairs_left(self._store, plan, one.owner)

    async def _range(self) -> dict[str, Any]:
        """Audit one range, with its share of the ceiling, until it is complete or the deadline is near."""
        pair, step = self._step.pair, self._step
        assert pair is not None  # read_step() has checked it
        with bound(bucket=pair.bucket, run=pair.run, range=pair.range):
            plan = await asyncio.to_thread(load_plan, self._store, pair.bucket, pair.run)
            if plan is None:
                raise RunMissing(f"run {pair.run} has no plan of its ranges: start the audit again")
            plan.range(pair.range)
            if await asyncio.to_thread(self._is_over, plan, pair):
                return {"again": False, "fruitless": 0}
            lease = BucketLease(self._store, plan.target, self._invocation.start or "")
            await asyncio.to_thread(lease.renew, pair.run, self._call.context.remaining())
            active = await asyncio.to_thread(active_ranges, self._store, plan, step.at_once)
            settings = self._settings_of(pair.owner)
            settings = replace(settings, max_rate=rate_share(settings.max_rate, active))
            audit: RangeAudit | None = None
            again = False
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
            fruitless = 0 if not again or (audit is not None and audit.progressed) else step.fruitless + 1
            if fruitless > MOST_FRUITLESS:
                raise RunError(f"the audit of range {pair.range} made no progress in {fruitless} invocations")
            log.info("range %s %s", pair.range, "continues in the next invocation" if again else "has ended")
            return {"again": again, "fruitless": fruitless}

    def _is_over(self, plan: RunPlan, pair: RangePair) -> bool:
        """True if the range or the run is complete, as after an answer that was lost. Blocks."""
        if RunReader(self._store, pair.bucket, pair.run).complete:
            return True
        (one,) = range_progress(self._store, replace(plan, ranges=(plan.range(pair.range),)))
        return one.complete

    async def _conclude(self) -> dict[str, Any]:
        """Conclude the run of each target, and then the start."""
        try:
            start = await self._take()
        except StartBusyError as busy:
            return {"next": "wait", "start": busy.start, "runs": [], "left": [str(busy)], "estate": None}
        if start.ended:
            return await asyncio.to_thread(self._before, start)
        with bound(start=start.id):
            await self._open(start)
            for place in start.in_phase(TargetPhase.BEGUN):
                if self._stop or not await self._conclude_one(place):
                    await self._save()
                    return {"next": "conclude", "start": start.id, "runs": [], "left": [], "estate": None}
                if start.several:
                    await self._save()
            for place in start.in_phase(TargetPhase.WAITING):
                if start.too_long:
                    one = start.targets[place]
                    start.note(place, TargetPhase.FAILED, sentence=f"{one.target.uri} was not audited: {one.sentence}")
            if waiting := start.in_phase(TargetPhase.WAITING):
                await self._save()
                left = [said for place in waiting if (said := start.targets[place].sentence)][:_ANSWERED]
                return {"next": "wait", "start": start.id, "runs": [], "left": left, "estate": None}
            done = await self._end.end(self._ended, self._account)
            runs = [one.summary for one in done.runs]
            if self._account is None and (failed := len(start.in_phase(TargetPhase.FAILED))):
                self._call.measure({"RunsFailed": failed})
            await self._save_end(runs, done.report)
            return _concluded(start, runs, None if done.report is None else done.report.to_dict())

    async def _conclude_one(self, place: int) -> bool:
        """Conclude one run. Return False if that takes a further invocation."""
        one = self._start.targets[place]
        run = RunReader(self._store, one.bucket, one.run or "")
        lease = BucketLease(self._store, one.target, self._start.id)
        with bound(bucket=one.bucket, run=one.run):
            try:
                await asyncio.to_thread(lease.renew, one.run or "", self._call.context.remaining())
                async with with_ledger(self._call.stores, self._call.settings) as resources:
                    sums = await asyncio.to_thread(self._sums, one, resources)
                    done = TargetEnd(run=one.run, summary=sums.summary, rollups=sums.rollups)
            except RunComplete:  # an earlier invocation died before it told of the end
                done = await asyncio.to_thread(written_end, run)
            except RunStopped as stopped:
                log.info("%s", stopped)
                return False
            except RunTaken as taken:  # another start continues the run
                self._start.note(place, TargetPhase.WAITING, sentence=str(taken))
                return True
            except AuditorError as error:
                await self._failed(place, error)
                return True
            await asyncio.to_thread(lease.give_back, one.run or "")
            await self._note(place, done)
            return True

    async def _failed(self, place: int, error: AuditorError) -> None:
        """Note the failure of a run that has begun, with the event that resumes it, and free its bucket."""
        one, run = self._start.targets[place], self._start.targets[place].run or ""
        log.error("the run cannot be concluded: %s", error)
        again = self._invocation.again(one.target, run)
        sentence = f"{one.target.uri}, run {run}: {error}; the next start resumes it, or the event {again}"
        self._start.note(place, TargetPhase.FAILED, sentence=sentence)
        await asyncio.to_thread(BucketLease(self._store, one.target, self._start.id).give_back, run)

    def _sums(self, one: StartTarget, resources: Resources) -> Concluded:
        run = one.run or ""
        found = conclude_run(
            one.target,
            run,
            self._settings_of(one.owner),
            resources,
            seconds=lambda: seconds_since(run),
            time_left=lambda: self._call.context.remaining() - MARGIN_SECONDS,
            batch_rows=self._batch_rows,
        )
        if found.unfinished:
            log.error("%s not complete: %s", counted(len(found.unfinished), "range"), ", ".join(found.unfinished[:20]))
        return found

    def _before(self, start: FunctionStart) -> dict[str, Any]:
        """Return the answer for a start that an earlier invocation has ended. Blocks."""
        runs = [RunReader(self._store, one.bucket, one.run).summary for one in start.targets[:_ANSWERED] if one.run]
        return _concluded(start, [one for one in runs if one is not None], None)


def _concluded(start: FunctionStart, runs: Sequence[Summary], estate: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the answer for a start that has ended. It has as many summaries as a state of Step Functions takes; the
    others are in their run folders.
    """
    failed = [one.sentence for one in start.targets if one.phase is TargetPhase.FAILED]
    answer: dict[str, Any] = {
        "next": "complete" if start.complete else "incomplete",
        "start": start.id,
        "runs": [],
        "left": [one[:_SENTENCE] for one in failed[:_ANSWERED]],
        "estate": None,
    }
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


def active_ranges(store: Store, plan: RunPlan, at_once: int) -> int:
    """Return how many ranges may be audited at once from now on: those that are not complete, at most at_once. Blocks.

    This number only falls. So if each range that is begun or continues gets the ceiling divided by it, the shares never
    exceed the ceiling together. The last ranges are begun last, so the search begins with them.
    """
    active = 0
    for one in range_progress(store, replace(plan, ranges=plan.ranges[::-1])):
        active += not one.complete
        if active >= at_once:
            return at_once
    return active
