"""Begin a run, or take one up: ask about the bucket, cut the target into ranges, and write run.json."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from auditor.aio.tasks import task_group
from auditor.audit.ask_bucket import ask_bucket
from auditor.audit.judging_configuration import begun_plan, check_facts, configuration_of, judging
from auditor.audit.limits import Limits, check_budget, planning_calls
from auditor.audit.range_progress import RangeProgress, range_progress
from auditor.audit.run_context import AuditProcess, RunContext, silent
from auditor.aws.connection import Connection
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.errors import OutputError, RunTaken
from auditor.model.bucket import BucketFacts
from auditor.model.target import Target
from auditor.rules.base import Plan, Rule, judges_values, make_plan
from auditor.runs.paths import began_at, later_run_id, range_name, run_path
from auditor.runs.reading import RunReader, compared_with, last_run
from auditor.runs.run_files import LISTING, PLAN, PlannedRange, RunPlan, one_range
from auditor.runs.stores.base import ConditionalStore

if TYPE_CHECKING:
    from auditor.audit.fill import Filling
    from auditor.audit.plan_ranges import KeyRange

log = logging.getLogger(__name__)

LEAST_KEYS: Final = 2_000
"""Number of keys below which a range costs more, by its connections and files, than it gains."""


class Division(Struct, frozen=True):
    """How a new run is cut into ranges. ranges: largest number of them. least: a range has at least about so many keys,
    so that a small target has fewer ranges. progress: called with the estimated number of keys so far.
    """

    ranges: int
    least: int = LEAST_KEYS
    progress: Callable[[float], None] = lambda keys: None


class RunStart(Struct, frozen=True, kw_only=True):
    """The run that a process is to begin or to take up. run_id: its ID. resumed: True to take up the run of this ID.
    named: True if the ID must stay as it is. filling: the run to fill; None to list the target. division: how to cut a
    new run into ranges; None for one range.
    """

    target: Target
    run_id: str
    resumed: bool
    named: bool
    filling: Filling | None = None
    division: Division | None = None


class BegunRun(Struct, frozen=True):
    """A run that has begun. latest: its target's latest complete run when this process began; None if there is none.
    left: the calls and dollars that are left for the objects. progress: how far each range is.
    """

    context: RunContext
    latest: RunReader | None
    left: Limits
    progress: Sequence[RangeProgress]


class _Loaded(Struct, frozen=True):
    """The answers of the store. plan: of the run to take up; None for a new run. progress: of its ranges."""

    latest: RunReader | None
    plan: RunPlan | None = None
    data: bytes = b""
    progress: Sequence[RangeProgress] = ()

    @property
    def ended(self) -> bool:
        """True if each range of the run is complete: no object is read any more."""
        return self.plan is not None and all(one.complete for one in self.progress)

    @property
    def is_empty(self) -> bool:
        """True if nothing of a run of one range is recorded, as of one whose bucket denied each call."""
        return len(self.progress) == 1 and not self.progress[0].begun and not self.progress[0].complete


async def begin_run(process: AuditProcess, start: RunStart) -> BegunRun:
    """Begin a run, or take one up.

    A new run is begun once its run.json is there. A run that is taken up must have the same questions, and its bucket
    the same settings, as when it began.

    Raises RunMissing, RunComplete, RunChanged or RunDamaged for a run that cannot be taken up, RunTaken if another
    process has begun the run, LimitTooLow if a limit leaves too little for one object, BucketError if the bucket cannot
    be asked or listed, and RunStopped if a server does not answer after a stop.
    """
    begin = _Begin(process, start)
    async with process.outer_stop.flight() as limit:
        begun = await begin.work()
    if limit.expired():
        raise silent(begin.asked, process.outer_stop)
    return begun


def open_run(process: AuditProcess, target: Target, run_id: str) -> RunContext:
    """Return the context of a run that has begun, for a process that works on one of its ranges. Makes no call. Blocks.

    Raises the errors of begin_run() for a run that cannot be taken up.
    """
    store, settings = process.places.store, process.settings
    rules, selection = judging(settings, process.places)
    run = RunReader(store, target.bucket, run_id)
    plan = begun_plan(run, target, settings, selection)
    process = replace(process, connection=_connection(process, plan.facts))
    return _context(process, rules, plan, run.plan_data or b"", fresh=False)


class _Begin:
    def __init__(self, process: AuditProcess, start: RunStart) -> None:
        self._process = process
        self._start = start
        self._store = process.places.store
        self._filling = start.filling
        self.rules, selection = judging(process.settings, process.places)
        self._selection: dict[str, Any] = selection
        if self._filling is not None:
            self.rules, self._selection = self._filling.rules, self._filling.selection
        self.asked = self._store.uri()
        """The place whose answer is awaited."""

    async def work(self) -> BegunRun:
        process, start = self._process, self._start
        async with task_group() as group:
            loading = group.create_task(process.thread.run(self._load))
            if start.resumed:  # a run that cannot be taken up makes no call
                await asyncio.wait([loading])
            loading.add_done_callback(self._note_loaded)
            asking = group.create_task(self._ask(loading))
        loaded: _Loaded = loading.result()
        connection, asked = asking.result()
        process = replace(process, connection=connection)
        if loaded.plan is not None:
            return await self._taken_up(process, loaded, loaded.plan, asked)
        return await self._new(process, loaded, asked)

    def _load(self) -> _Loaded:
        """Load the run to take up and its target's latest run from the store, and check that the store can be written.
        Blocks.
        """
        start, store = self._start, self._store
        latest = last_run(store, start.target) if start.target.whole else None
        store.check_writable()
        if self._filling is not None:
            self._filling.load(store, latest)
        if not start.resumed:
            return _Loaded(latest)
        run = RunReader(store, start.target.bucket, start.run_id)
        plan = begun_plan(run, start.target, self._process.settings, self._selection)
        progress = list(range_progress(store, plan))
        if all(one.start_after is None and not one.complete for one in progress):
            log.warning("run %s ended before it saved a part: it starts again from its first key", plan.run)
        return _Loaded(latest, plan, run.plan_data or b"", progress)

    async def _ask(self, loading: asyncio.Task[_Loaded]) -> tuple[Connection, BucketFacts | None]:
        """Return the connection with the bucket's region, and the facts of the bucket; None if no range needs them."""
        process = self._process
        loaded = loading.result() if loading.done() else None
        if loaded is None or not loaded.ended:
            return await ask_bucket(process.settings, process.connection, process.caller, process.engines)
        assert loaded.plan is not None  # a run whose ranges are complete has begun
        return _connection(process, loaded.plan.facts), None

    def _note_loaded(self, loading: asyncio.Task[_Loaded]) -> None:
        if not loading.cancelled():
            self.asked = f"s3://{self._start.target.bucket}"

    async def _taken_up(
        self, process: AuditProcess, loaded: _Loaded, plan: RunPlan, facts: BucketFacts | None
    ) -> BegunRun:
        """Return the context of a run that began before, whose bucket must have the same settings. A run of which
        nothing is recorded begins anew, by the settings as they are now.
        """
        data = loaded.data
        if facts is not None and self._filling is None and loaded.is_empty:
            plan = self._plan(process, plan.run, plan.target, facts, loaded.latest)
            data = plan.to_json()
        elif facts is not None:
            check_facts(plan, facts if self._filling is None else self._filling.facts(plan.facts, facts))
        context = _context(process, self.rules, plan, data, fresh=False)
        context = replace(context, writes_plan=data != loaded.data)
        if facts is not None:
            least = 1 + calls_per_object(process.settings, context.judging, self._filling)
            check_budget(process.caller, process.settings, least)
            await self._spread(context)
        return BegunRun(context, loaded.latest, Limits.left(process.caller), loaded.progress)

    async def _new(self, process: AuditProcess, loaded: _Loaded, facts: BucketFacts | None) -> BegunRun:
        """Write the run.json of a new run, and return its context."""
        assert facts is not None  # a new run asks
        start, filling, latest, settings = self._start, self._filling, loaded.latest, process.settings
        run_id = start.run_id
        if not start.named and latest is not None:  # the clock may have been set back since
            run_id = later_run_id(run_id, latest.run_id)
        if filling is not None:
            facts = filling.new_facts(facts)
        plan = self._plan(process, run_id, start.target, facts, latest)
        if filling is not None:
            plan = filling.plan(plan)
        if start.division is not None:
            plan = await self._cut(process, plan, start.division, latest)
        calls = plan.calls
        plan, data = await process.thread.run(self._written, plan)
        context = _context(process, self.rules, plan, data, fresh=True)
        await self._spread(context)
        left = Limits.left(process.caller).after(calls, settings)
        return BegunRun(context, latest, left, [RangeProgress(one.id) for one in plan.ranges])

    def _plan(
        self, process: AuditProcess, run_id: str, target: Target, facts: BucketFacts, latest: RunReader | None
    ) -> RunPlan:
        """Return run.json for a run of one range. Raises LimitTooLow if a limit leaves too little for one object."""
        settings, judged = process.settings, make_plan(self.rules, facts)
        check_budget(process.caller, settings, 1 + calls_per_object(settings, judged, self._filling))
        if self._filling is None and settings.key_policies and judged.ask.head is None:
            facts = replace(facts, key_policies={})  # they are read with the objects
        return RunPlan(
            run=run_id,
            target=target,
            now=began_at(run_id),
            ledger=self._selection["algorithms"] is not None,
            selected=tuple(rule.id for rule in self.rules),
            configuration=configuration_of(settings),
            selection=self._selection,
            facts=facts,
            ask=judged.ask,
            against=latest.run_id if latest else None,
            ranges=one_range(target),
        )

    async def _cut(self, process: AuditProcess, plan: RunPlan, division: Division, latest: RunReader | None) -> RunPlan:
        """Cut the target into ranges, and return the plan with them."""
        from auditor.audit.plan_ranges import check_number, plan_by_listing, plan_from_run  # few runs have several

        check_number(division.ranges)
        target, settings, found = self._start.target, process.settings, None
        if latest is not None:
            found = await process.thread.run(plan_from_run, target, latest, division.ranges)
        if found is None:
            most = planning_calls(settings)
            found = await plan_by_listing(
                target, settings, division.ranges, division.progress, most=most, rate=process.rate
            )
            await process.rate.quiet()  # the ranges have limits of their own
        planned = enumerate(joined(found.ranges, division.least))
        ranges = [PlannedRange(range_name(at), one.start_after, one.stop_at, one.keys) for at, one in planned]
        source = found.run or LISTING
        return replace(plan, ranges=tuple(ranges), source=source, exact=found.exact, calls=found.calls)

    def _written(self, plan: RunPlan) -> tuple[RunPlan, bytes]:
        """Write run.json, and return its content and its bytes. If another process has just begun the run, return what
        that one wrote for a run of several ranges. Blocks. Raises RunTaken for a run of one range.
        """
        store, path = self._store, f"{run_path(plan.target.bucket, plan.run)}/{PLAN}"
        data = plan.to_json()
        if isinstance(store, ConditionalStore):
            written = store.put_if(path, data, None) is not None
        else:
            written = not self._start.named or store.get(path) is None
            if written:
                store.put(path, data)
        run = RunReader(store, plan.target.bucket, plan.run)
        if written or run.plan_data == data:  # our own write, whose answer was lost
            return plan, data
        if self._start.division is None:
            raise RunTaken(f"{store.uri(path)} was written by another process: that one audits {plan.target.uri}")
        return begun_plan(run, plan.target, self._process.settings, self._selection), run.plan_data or b""

    async def _spread(self, run: RunContext) -> None:
        """Spread the report of S3 Inventory over the ranges for the processes that work on them, unless it is."""
        alone = self._start.division is None and not run.plan.divided  # this process reads the report itself
        if alone or run.settings.source != MIXED:
            return
        from auditor.audit.sources.inventory_by_range import spread_report  # imports csv and tempfile
        from auditor.s3.inventory.setup import inventory_place

        place = await inventory_place(run.settings.inventory, run.plan.target, run.ask_setting)
        store, stopped = run.places.store, lambda: bool(run.outer_stop)
        await run.thread.run(spread_report, place, run.settings, store, run.plan, stopped)


def calls_per_object(settings: Settings, judged: Plan, filling: Filling | None = None) -> int:
    """Return the largest number of calls for one object, without the policy of its KMS key. filling: the run to fill;
    None for the objects of a listing.
    """
    if filling is not None:
        return filling.calls(judged)
    return judged.ask.calls + (settings.keep is not None and judges_values(judged))


def _connection(process: AuditProcess, facts: BucketFacts) -> Connection:
    """Return the connection with the region of the bucket, whose facts were read before."""
    region = facts.region if isinstance(facts.region, str) else None
    return replace(process.connection, region=region or process.connection.region)


def _context(process: AuditProcess, rules: tuple[Rule, ...], plan: RunPlan, data: bytes, *, fresh: bool) -> RunContext:
    return RunContext(
        **asdict(process),
        plan=plan,
        data=data,
        rules=rules,
        judging=make_plan(rules, plan.facts),
        facts=plan.facts,
        earlier=compared_with(process.places.store, plan),
        fresh=fresh,
        range=plan.ranges[0],
    )


def joined(ranges: Sequence[KeyRange], least: int) -> list[KeyRange]:
    """Join neighbouring ranges until each has at least `least` planned keys, but perhaps the last one."""
    found: list[KeyRange] = []
    for one in ranges:
        if found and found[-1].keys < least:
            last = found.pop()
            one = replace(one, start_after=last.start_after, keys=last.keys + one.keys)
        found.append(one)
    return found


def listed_by(run: RunReader) -> int | None:
    """Return how many objects a complete run listed, for an estimate; None if its summary is missing or damaged."""
    with suppress(OutputError):
        return None if run.summary is None else run.summary.coverage.listed
    return None
