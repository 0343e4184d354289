"""Begin a run that is divided into ranges of keys: plan the ranges, ask about the bucket once, and write both."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.begin import ask_bucket, ask_setting
from auditor.audit.divided.begun import check_facts, check_target, read_begun
from auditor.audit.divided.keys import check_keys
from auditor.audit.divided.state import range_progress
from auditor.audit.folder_thread import FolderThread, silent
from auditor.audit.judged_by import begun_file
from auditor.audit.limits import Limits, check_budget, permits_of, planning_calls, settings_after
from auditor.audit.ranges.plan import KeyRange, RangePlan, check_number, plan_by_listing, plan_from_run
from auditor.audit.resume import check_exists, check_selection, judging
from auditor.audit.sources.spread_file import RunReport
from auditor.aws.connection import Connection
from auditor.config.resources import Resources, caller_of, connection_to
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.errors import RunChanged, RunComplete, RunDamaged
from auditor.model.bucket import BucketFacts
from auditor.model.target import Target
from auditor.rules.plan import make_plan
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.bucket_file import BucketFile, ReadFacts
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.latest import last_run
from auditor.runs.ownership import writer_of
from auditor.runs.paths import UNDIVIDED, new_run_id
from auditor.runs.plan_file import LISTING, PlanFile, PlannedRange, load_plan, numbered
from auditor.runs.plan_file import NAME as PLAN_FILE
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import ConditionalStore
from auditor.runs.tally import Tally
from auditor.s3.calls import Caller
from auditor.s3.engines.pool import EnginePool
from auditor.s3.inventory.configured import inventory_place
from auditor.s3.rate import RateLimit

LEAST_KEYS: Final = 2_000
"""Number of keys below which a range costs more, by its connections and files, than it gains."""


class BegunRun(Struct, frozen=True):
    """A begun run. left: what --max-calls and --max-cost leave for the ranges."""

    plan: PlanFile
    file: BucketFile
    left: Limits


async def begin(
    target: Target,
    settings: Settings,
    places: Resources,
    stop: Stop,
    *,
    ranges: int,
    least: int = LEAST_KEYS,
    run_id: str | None = None,
    resume: bool = True,
    progress: Callable[[float], None] = lambda keys: None,
) -> BegunRun:
    """Begin a divided run, or continue one: write plan.json, bucket.json and state.json, each unless it is there.

    A killed begin is completed by the next one, which keeps what is written. ranges: largest number of ranges. least:
    a range has at least about so many keys, so that a small target has fewer ranges. run_id: ID of the run; None for a
    new one. resume: False if the run of this ID is new. progress: called with the estimated number of keys so far.

    Raises RunMissing, RunComplete, RunChanged or RunDamaged for a run that cannot be resumed, LimitTooLow if a limit
    leaves too little for one object, BucketError if the bucket cannot be asked or listed, and RunStopped if a server
    does not answer after a stop.
    """
    check_number(ranges)
    beginner = _Begin(target, settings, places, stop, run_id, progress)
    try:
        begun: BegunRun | None = None
        async with stop.flight():
            begun = await beginner.work(ranges, least, resume=resume and run_id is not None)
        if begun is None:
            raise silent(f"s3://{target.bucket}", stop)
        return begun
    finally:
        beginner.thread.end()


class _Begin:
    def __init__(
        self,
        target: Target,
        settings: Settings,
        places: Resources,
        stop: Stop,
        run_id: str | None,
        progress: Callable[[float], None],
    ) -> None:
        self._progress = progress
        self._stop = stop
        self._target = target
        self._settings = settings
        self._places = places
        self._store = places.store
        self._run_id = run_id or new_run_id(datetime.now(UTC), secrets.token_bytes(3))
        self._run = RunReader(self._store, target.bucket, self._run_id)
        self._rules, self._selection = judging(settings, places)
        self._rate = RateLimit(settings.max_rate)
        self._latest: RunReader | None = None
        self.thread = FolderThread(stop)

    async def work(self, ranges: int, least: int, *, resume: bool) -> BegunRun:
        plan = await self.thread.run(self._load, resume)
        new = plan is None
        if plan is None:
            plan = await self._plan(ranges, least)
            plan = await self.thread.run(self._written, plan)
        settings = settings_after(self._settings, plan.calls if new else 0)
        file = await self.thread.run(lambda: self._run.bucket)
        left = Limits(settings.max_calls, settings.max_cost)
        if file is None:
            file, left = await self._asked(settings)
            await self.thread.run(self._store.put, f"{self._run.path}/{BUCKET_FILE}", file.to_json())
        elif await self.thread.run(self._has_unfinished, plan):
            facts, caller = await self._facts(settings)
            check_facts(file, facts)
            left = Limits.left(caller)
        if not await self.thread.run(self._has_state):
            if settings.source == MIXED:
                settings = replace(settings, max_calls=left.calls, max_cost=left.dollars)
                left = await self._spread(settings, plan, file.facts)
            await self.thread.run(self._write_state, file)
        await self._rate.quiet()  # the ranges have limits of their own
        return BegunRun(plan, file, left)

    def _load(self, resume: bool) -> PlanFile | None:
        """Return the plan of the run to resume; None for a run without one. Blocks."""
        store, target = self._store, self._target
        if target.whole:
            self._latest = last_run(store, target)
        store.check_writable()
        if not resume:
            return None
        run = self._run
        check_exists(run)
        if run.complete:
            self._forget_report()
            raise RunComplete(f"run {self._run_id} is complete: there is nothing to resume")
        plan = load_plan(store, target.bucket, self._run_id)
        if plan is None:
            raise RunChanged(f"run {self._run_id} is not divided into ranges: resume it without --jobs")
        check_target(plan, target)
        if run.bucket is not None:
            check_keys(run.bucket, self._settings)
        if run.checkpoint is not None:
            if run.bucket is None:
                raise RunDamaged(f"{run.uri}/{BUCKET_FILE} is gone, and all ranges are judged by it: start a new run")
            check_selection(read_begun(store, target, self._run_id).state, self._selection)
        return plan

    def _forget_report(self) -> None:
        """Delete what a process left that was killed between the end of the run and the deletion. Blocks."""
        RunReport(self._store, self._run.path, self._run_id).forget()

    async def _plan(self, ranges: int, least: int) -> PlanFile:
        found = None
        if self._latest is not None:
            found = await self.thread.run(plan_from_run, self._target, self._latest, ranges)
        if found is None:
            most = planning_calls(self._settings)
            found = await plan_by_listing(
                self._target, self._settings, ranges, self._progress, most=most, rate=self._rate
            )
        return _file_of(self._run_id, found, least)

    def _written(self, plan: PlanFile) -> PlanFile:
        """Write plan.json, unless another process has just done so. Return the plan that is there. Blocks."""
        path = f"{self._run.path}/{PLAN_FILE}"
        if not isinstance(self._store, ConditionalStore):
            self._store.put(path, plan.to_json())
        elif self._store.put_if(path, plan.to_json(), None) is None:
            return load_plan(self._store, self._target.bucket, self._run_id) or plan
        return plan

    async def _asked(self, settings: Settings) -> tuple[BucketFile, Limits]:
        """Ask about the bucket. Return bucket.json, and the limits that are left."""
        facts, caller = await self._facts(settings)
        ask = make_plan(self._rules, facts).ask
        check_budget(caller, self._settings, 1 + ask.calls)
        if settings.key_policies and ask.head is None:
            facts = replace(facts, key_policies={})  # the ranges read them
        read = ReadFacts(0, facts, ask)
        ledger, against = self._places.ledger is not None, self._latest.run_id if self._latest else None
        file = begun_file(self._run_id, self._target, self._rules, settings, read, ledger=ledger, against=against)
        return file, Limits.left(caller)

    async def _facts(self, settings: Settings) -> tuple[BucketFacts, Caller]:
        """Return the facts of the bucket as they are now, and what made the calls for them."""
        caller, connection = self._caller(settings)
        async with EnginePool(self._places.engines) as engines:
            _, facts = await ask_bucket(settings, connection, caller, engines.lend)
        return facts, caller

    async def _spread(self, settings: Settings, plan: PlanFile, facts: BucketFacts) -> Limits:
        """Spread the report of S3 Inventory over the ranges. Return the limits that are left."""
        from auditor.audit.sources.inventory_by_range import spread_report  # imports csv and tempfile

        caller, connection = self._caller(settings)
        region = facts.region if isinstance(facts.region, str) else None
        connection = replace(connection, region=region or connection.region)
        async with EnginePool(self._places.engines) as engines:
            asking = partial(ask_setting, settings, connection, caller, engines.lend)
            place = await inventory_place(settings.inventory, self._target, asking)
        await self.thread.run(spread_report, place, settings, self._store, plan, lambda: bool(self._stop))
        return Limits.left(caller)

    def _caller(self, settings: Settings) -> tuple[Caller, Connection]:
        """Return what makes calls under the limits of the settings, and how to reach the bucket."""
        concurrency, permits = permits_of(settings)
        bucket = self._target.bucket
        caller = caller_of(bucket, settings, self._rate, permits, ceiling=self._places.ceiling, limits_cost=True)
        return caller, connection_to(bucket, settings, concurrency)

    def _has_unfinished(self, plan: PlanFile) -> bool:
        """True if a range is still to be audited. Blocks."""
        return any(not one.complete for one in range_progress(self._store, plan))

    def _has_state(self) -> bool:
        return RunReader(self._store, self._target.bucket, self._run_id).checkpoint is not None

    def _write_state(self, file: BucketFile) -> None:
        """Write state.json, which has the run's questions: the begin is then whole. Blocks."""
        state = Checkpoint(
            run=self._run_id,
            target=self._target,
            selection=self._selection,
            rules_undecided=make_plan(self._rules, file.facts).undecided,
            next_part=0,
            start_after=None,
            hop=0,
            tally=Tally(),
        )
        writer = writer_of(self._store, self._target.bucket, self._run_id, UNDIVIDED)
        try:
            writer.claim(None, state)
            writer.put_checkpoint(state, last=True)
        finally:
            writer.release()


def _file_of(run_id: str, plan: RangePlan, least: int) -> PlanFile:
    ranges = tuple(
        PlannedRange(numbered(number), one.start_after, one.stop_at, one.keys)
        for number, one in enumerate(joined(plan.ranges, least), 1)
    )
    source = plan.run or LISTING
    return PlanFile(run=run_id, target=plan.target, source=source, exact=plan.exact, calls=plan.calls, ranges=ranges)


def joined(ranges: Sequence[KeyRange], least: int) -> list[KeyRange]:
    """Join neighbouring ranges until each has at least `least` planned keys, but perhaps the last one."""
    found: list[KeyRange] = []
    for one in ranges:
        if found and found[-1].keys < least:
            last = found.pop()
            one = KeyRange(last.start_after, one.stop_at, last.keys + one.keys)
        found.append(one)
    return found
