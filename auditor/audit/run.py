"""Audit one target: read the bucket's settings, list, read objects, judge, hash, write the run folder."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from auditor.aio.groups import task_group
from auditor.aio.stop import Stop
from auditor.audit.begin import RunSoFar, ask_bucket, ask_setting
from auditor.audit.context import RunContext
from auditor.audit.folder_thread import FolderThread, silent
from auditor.audit.gathering import Gathering
from auditor.audit.kind import RunKind
from auditor.audit.limits import Limits, check_budget, permits_of
from auditor.audit.resume import judging
from auditor.aws.connection import Connection
from auditor.config.resources import Resources, caller_of, connection_to
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.errors import InventoryError, InventoryMissing, OutputError
from auditor.hashing.limits import STREAMS
from auditor.model.bucket import BucketFacts
from auditor.model.object import Skipped
from auditor.model.rollup import RollUps
from auditor.model.summary import Resume, Summary
from auditor.model.target import Target
from auditor.progress import RunCounts, Snapshot
from auditor.rules.plan import carried_on, make_plan
from auditor.runs.folder import PART_LINES
from auditor.runs.paths import began_at, later_run_id, new_run_id
from auditor.runs.reading import RunReader
from auditor.runs.tally import Tally
from auditor.s3.engines.pool import EnginePool
from auditor.s3.key_policies import open_key_policies
from auditor.s3.rate import RateLimit
from auditor.text import visible

log = logging.getLogger(__name__)


class Audit:
    """Audits one target. Call run() once.

    kind: answers the questions on which a fill or a range of a divided run differs; None for an audit of the whole
    target. run_id: ID of an earlier run of the same target, to resume it; None for a new run. resume: False to begin a
    new run with the ID `run_id`. began: called with the run's ID once the run folder exists. hop: number of Lambda
    invocations before this one in the chain that hands the run on. hands_on: True if the next invocation continues a
    stopped run, so that this one writes no summary. clock: returns the present time, in seconds since 1970.
    """

    def __init__(
        self,
        target: Target,
        settings: Settings,
        places: Resources,
        stop: Stop,
        *,
        kind: RunKind | None = None,
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
        self._stop = Stop(stop)  # a stop of its own: if --max-calls ends this run, the other runs continue
        self._began = began
        self._hop = hop
        self._resumed = resume and run_id is not None
        self._named = run_id is not None
        self.run_id = run_id or new_run_id(datetime.fromtimestamp(clock(), UTC), secrets.token_bytes(3))
        self._target = target
        self._ceiling, permits = permits_of(settings)
        self._rate = RateLimit(settings.max_rate)
        self._caller = caller_of(target.bucket, settings, self._rate, permits, ceiling=places.ceiling, limits_cost=True)
        spare = (settings.streams or STREAMS) if settings.hash else 0  # for an object that several streams read
        self._connection = connection_to(target.bucket, settings, self._ceiling + spare)
        self._engines = places.engines
        self._kind = kind or RunKind(*judging(settings, places))
        self._thread = FolderThread(stop)
        self._started = time.monotonic()
        self._tally = Tally()
        self._gathering: Gathering | None = None

    async def run(self) -> Summary:
        """Audit the target, write the summary to the run folder, and return it. After a RunError, written parts stay.

        Raises RunStopped if a server does not answer in time after a stop, so that the run cannot begin or be saved.
        """
        try:
            async with EnginePool(self._places.engines) as engines:
                self._engines = engines.lend
                begun = await self._begin()
                check_budget(self._caller, self._settings, 1 + self._kind.calls_per_object(begun.plan, self._settings))
                async with self._opened(begun) as run:
                    state = run.before.state
                    self._tally = state.tally.copy() if state else self._kind.first_tally()
                    self._gathering = Gathering(
                        run,
                        self._kind,
                        self._tally,
                        hands_on=self._hands_on,
                        part_lines=self._part_lines,
                        started=self._started,
                        began=self._note_begun,
                    )
                    return await self._gathering.run()
        finally:
            self._thread.end()

    @property
    def left(self) -> Limits:
        """The calls and dollars that --max-calls and --max-cost still allow."""
        return Limits.left(self._caller)

    @property
    def saved(self) -> Resume | None:
        """The point from which the run can be continued; None if this process saved no progress."""
        gathering = self._gathering
        if gathering is None or not gathering.progressed:
            return None
        return Resume(self.run_id, gathering.saved_key, self._stop.reason)

    @property
    def rollups(self) -> RollUps:
        """The roll-ups of the run, once run() has ended it."""
        assert self._gathering is not None
        assert self._gathering.rollups is not None
        return self._gathering.rollups

    @property
    def unsent(self) -> str | None:
        """A sentence on the objects that the queue did not take before the end; None if it took all."""
        return self._gathering.unsent if self._gathering else None

    @property
    def counts(self) -> RunCounts:
        """The present counts of the run."""
        coverage, findings = self._tally.coverage, sum(self._tally.findings.values())
        return RunCounts(coverage["listed"], findings, coverage["undecided"], self._caller.counts["throttled"])

    def snapshot(self) -> Snapshot:
        """Return the present counts, for a progress line."""
        counts = self.counts
        large = self._gathering is not None and self._gathering.judges_large_policy
        return Snapshot(
            what=visible(self._target.uri),
            objects=counts.listed,
            seconds=time.monotonic() - self._started,
            detail=f"{counts.words}{', judging a large policy' if large else ''}",
            expected=self._gathering.expected if self._gathering else None,
        )

    async def _begin(self) -> RunContext:
        """Load the state of the run, and ask about the bucket meanwhile."""
        store = self._places.store
        async with self._outer_stop.flight() as limit, task_group() as group:
            run_id = self.run_id if self._resumed else None
            loading = group.create_task(self._thread.run(self._kind.load, store, self._target, run_id))
            if run_id is not None:  # a run that cannot be resumed makes no call
                await asyncio.wait([loading])
            asking = group.create_task(self._ask(loading))
        if limit.expired():
            asked_place = store.uri() if loading.cancelled() else f"s3://{self._target.bucket}"
            raise silent(asked_place, self._outer_stop)
        before: RunSoFar = loading.result()
        now = began_at(self.run_id)
        if not self._named and before.latest is not None:  # the clock may have been set back since
            self.run_id = later_run_id(self.run_id, before.latest.run_id)
        self._target = before.target
        self._connection, asked = asking.result()
        facts, state, against = self._kind.facts(asked, before), before.state, before.against
        return RunContext(
            run_id=self.run_id,
            target=self._target,
            settings=self._settings,
            places=self._places,
            resumed=self._resumed,
            hop=self._hop,
            now=self._kind.now or now,
            stop=self._stop,
            outer_stop=self._outer_stop,
            thread=self._thread,
            clock=self._clock,
            connection=self._connection,
            engines=self._engines,
            caller=self._caller,
            rate=self._rate,
            concurrency=self._ceiling,
            facts=facts,
            plan=carried_on(make_plan(self._kind.rules, facts), state.rules_undecided if state else ()),
            before=before,
            earlier=None if against is None else RunReader(store, self._target.bucket, against),
        )

    async def _ask(self, loading: asyncio.Task[RunSoFar]) -> tuple[Connection, BucketFacts]:
        """Return the connection with the bucket's region, and the facts of the bucket. No call is sent if an earlier
        process read them for this one, too.
        """
        facts = loading.result().facts if loading.done() else None
        if facts is None:
            return await ask_bucket(self._settings, self._connection, self._caller, self._engines)
        region = facts.region if isinstance(facts.region, str) else None
        return replace(self._connection, region=region or self._connection.region), facts

    async def _ask_setting(self, action: str, token: str | None) -> Mapping[str, Any]:
        return await ask_setting(self._settings, self._connection, self._caller, self._engines, action, token)

    @asynccontextmanager
    async def _opened(self, run: RunContext) -> AsyncIterator[RunContext]:
        """Open the further sources of facts that the settings name, and yield the run with them."""
        async with AsyncExitStack() as stack:
            if self._settings.source == MIXED:
                run = await self._with_inventory(run, stack)
            if run.plan.ask.head is None and self._kind.reads_keys(run):
                known = run.before.bucket.facts.key_policies if run.before.bucket else run.facts.key_policies
                known = {} if isinstance(known, Skipped) else known
                keys = await stack.enter_async_context(open_key_policies(run.connection, run.caller, known))
                run = replace(run, keys=keys, facts=replace(run.facts, key_policies=keys.policies))
            yield run

    async def _with_inventory(self, run: RunContext, stack: AsyncExitStack) -> RunContext:
        """Return the run with the facts of an S3 Inventory. If the settings allow that, it may have none."""
        try:
            opening = self._kind.open_inventory(run, self._ask_setting)
            return replace(run, inventory=await stack.enter_async_context(opening))
        except (InventoryMissing, InventoryError, OutputError) as none:
            if not self._settings.live_without_inventory:
                raise
            log.warning("%s is audited by calls: %s", visible(run.target.uri), none)
            return replace(run, without_inventory=str(none))

    def _note_begun(self) -> None:
        if self._began is not None:
            self._began(self.run_id)
