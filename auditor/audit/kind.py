"""How the kinds of runs differ: an audit of a whole target, a fill of an earlier run, and a range of a divided run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from msgspec.structs import replace

from auditor.audit.begin import RunSoFar, load_run
from auditor.audit.context import RunContext
from auditor.audit.ending import RunEnding
from auditor.audit.judged_by import begun_file
from auditor.audit.record_judge import RecordJudge
from auditor.audit.sources.last_run import LastRunFacts, reused_groups
from auditor.audit.sources.walk import FactSource, Listing, ObjectWalk, RunObjects
from auditor.config.settings import Settings
from auditor.model.bucket import BucketFacts
from auditor.model.summary import NO_INVENTORY, Summary
from auditor.model.target import Target
from auditor.rules.base import Rule
from auditor.rules.judge import Judge
from auditor.rules.plan import Plan, judges_values
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.bucket_file import BucketFile, ReadFacts
from auditor.runs.paths import UNDIVIDED
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally
from auditor.s3.engines.base import Engine
from auditor.s3.inventory.configured import AskPage
from auditor.s3.object_reader import ObjectReader


class RunKind:
    """Answers the questions on which the kinds of runs differ. The answers here are those of a whole target's audit.

    rules: those that judge the run. selection: the settings that must stay the same when the run is resumed. range_id:
    ID in the names of the parts and the checkpoint. records_bucket: True if the process records the findings on the
    bucket itself. describes: name of the file with the facts of the bucket that this process reads. now: the time at
    which conditions with a date are judged, in ISO 8601; None for the run's start.
    """

    def __init__(
        self,
        rules: tuple[Rule, ...],
        selection: dict[str, Any],
        *,
        range_id: str = UNDIVIDED,
        records_bucket: bool = True,
        describes: str = BUCKET_FILE,
        now: str | None = None,
    ) -> None:
        self.rules = rules
        self.selection = selection
        self.range_id = range_id
        self.records_bucket = records_bucket
        self.describes = describes
        self.now = now

    def load(self, store: Store, target: Target, run_id: str | None) -> RunSoFar:
        """Load the run to resume, None for a new run, and the run with which to compare. Blocks."""
        return load_run(store, run_id, target, self.selection)

    def facts(self, asked: BucketFacts, before: RunSoFar) -> BucketFacts:
        """Return the facts of the bucket by which to judge. asked: those that were read just now."""
        return asked

    def first_tally(self) -> Tally:
        """Return the counts with which a new run begins."""
        return Tally()

    def bucket_file(self, run: RunContext, first_part: int) -> BucketFile:
        """Return bucket.json of a new run, whose first part has this number."""
        read = ReadFacts(first_part, run.facts, run.plan.ask)
        return begun_file(
            run.run_id, run.target, self.rules, run.settings, read, ledger=run.has_ledger, against=run.against
        )

    def open_inventory(self, run: RunContext, ask: AskPage) -> AbstractAsyncContextManager[FactSource]:
        """Open the facts of S3 Inventory. ask: makes a call on a setting of the bucket."""
        from auditor.audit.sources.inventory import open_inventory  # imports csv and tempfile

        return open_inventory(run, ask)

    def reads_keys(self, run: RunContext) -> bool:
        """True to read the policy of each KMS key that encrypts an object."""
        return run.settings.key_policies

    def describer(self, run: RunContext) -> Callable[[int], bytes] | None:
        """Return a function that makes the bytes of the file `describes`, given the number of the first part that this
        process writes; None to write no such file.
        """
        return partial(self._describe, run)

    def _describe(self, run: RunContext, first_part: int) -> bytes:
        known = run.before.bucket
        if run.keys is not None:  # they may grow meanwhile
            run = replace(run, facts=replace(run.facts, key_policies=dict(run.keys.policies)))
        if known is not None:
            return known.resumed(run.facts, run.plan.ask, first_part).to_json()
        return self.bucket_file(run, first_part).to_json()

    def calls_per_object(self, plan: Plan, settings: Settings) -> int:
        """Return the largest number of calls for one object, without the policy of its KMS key."""
        return plan.ask.calls + (settings.keep is not None and judges_values(plan))

    def objects(
        self, run: RunContext, engine: Engine, reader: ObjectReader, judge: Judge, tally: Tally
    ) -> tuple[RunObjects, RecordJudge]:
        """Return the objects to audit, and what says which of their lines are recorded. reader: reads one object.
        judge: judges it. tally: the counts of the run.
        """
        facts: list[FactSource] = []
        if run.settings.keep is not None and run.earlier is not None:
            last = LastRunFacts(
                run.earlier,
                run.settings,
                run.facts,
                reused_groups(run.plan, ledger=run.has_ledger),
                run.now,
                run.clock,
                start_after=run.remaining.start_after,
                tidies=self.records_bucket,  # once in a divided run
            )
            facts.append(last)
        values = bool(facts) and judges_values(run.plan)
        if run.inventory is not None:
            facts.append(run.inventory)
        walk = ObjectWalk(Listing(engine, run.caller), facts, reader, judge, run.thread.run, values=values)
        return walk, RecordJudge(judge, tally)

    def algorithms(self, run: RunContext) -> Sequence[str] | None:
        """Return the wanted digests that the summary counts; None without a ledger."""
        return run.settings.algorithms if run.has_ledger else None

    def unseen(self, run: RunContext, tally: Tally) -> Iterable[str]:
        """Return phrases on further things that the run did not look at, for the summary."""
        if run.without_inventory:
            return (f"{NO_INVENTORY} ({run.without_inventory})",)
        return () if run.inventory is None else run.inventory.unseen(tally)

    async def end(self, ending: RunEnding, *, hands_on: bool) -> Summary:
        """End the run. hands_on: True if another process continues it."""
        return await (ending.hand_on() if hands_on else ending.finish())
