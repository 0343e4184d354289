"""Audit one range of a run that is divided into ranges of keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from auditor.aio.stop import Stop
from auditor.audit.begin import RunSoFar
from auditor.audit.divided.begun import check_same, read_begun
from auditor.audit.divided.keys import check_keys, reads_keys, with_policies
from auditor.audit.ending import RunEnding
from auditor.audit.resume import begun_rollups
from auditor.audit.run import Audit
from auditor.aws.connection import Connection
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import RunComplete
from auditor.model.bucket import BucketFacts
from auditor.model.object import Skipped
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.rules.plan import Plan
from auditor.runs.bucket_file import BucketFile
from auditor.runs.checkpoint import damaged, load_checkpoint
from auditor.runs.folder import PART_LINES
from auditor.runs.key_file import KeyFile, keys_name, load_keys
from auditor.runs.paths import checkpoint_name
from auditor.runs.plan_file import numbered
from auditor.runs.reading import RunReader
from auditor.runs.tally import Tally

if TYPE_CHECKING:
    from auditor.audit.mixed.source import PageFacts


class RangeAudit(Audit):
    """Audits one range of a run that begin() has begun, or goes on with it. Call run() once.

    The range has the parts and the checkpoint with its ID. The facts of the bucket are those of bucket.json. run()
    returns the summary of the range, and writes none: combine() sums up the run. The summary's `resume` says how far a
    range came that is not complete.

    run_id: ID of the run. range_id: that of the range. target: the target of the whole run. settings: those with which
    the run was begun; max_rate, max_calls and max_cost are the range's share. hop: number of Lambda invocations before
    this one that worked on the range. Raises, besides what Audit does, RunComplete for a range that is complete, and
    RunTaken if another process writes it.
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
        hop: int = 0,
        part_lines: int = PART_LINES,
    ) -> None:
        super().__init__(
            target, settings, places, stop, run_id=run_id, resume=True, hop=hop, hands_on=True, part_lines=part_lines
        )
        self._whole = target
        self._range_id = range_id
        self._describes = keys_name(range_id)
        self._records_bucket = range_id == numbered(1)
        self._file: BucketFile | None = None

    def _load(self, run_id: str | None) -> RunSoFar:
        store, name = self._places.store, self._range_id
        begun = read_begun(store, self._whole, self.run_id)
        check_same(begun, self._selection)
        mine = begun.plan.range(name)
        self._expected = mine.keys
        target = begun.plan.target_of(mine)
        state = load_checkpoint(store, target.bucket, self.run_id, name)
        if state is not None:
            place = f"{store.uri(f'{begun.path}/{checkpoint_name(name)}')}"
            if state.ended is not None:
                raise RunComplete(f"range {name} of run {self.run_id} is complete: there is nothing to resume")
            try:
                if state.target != target:
                    raise ValueError("it is of other keys than plan.json gives the range")
                Tally.from_dict(state.tally).check()
                begun_rollups(state)
            except ValueError as error:
                raise damaged(place, error) from error
        check_keys(begun.file, self._settings)
        self._file, data = begun.file, None
        if reads_keys(begun.file) and (keys := load_keys(store, begun.path, self.run_id, name)) is not None:
            found, data = keys
            self._file = with_policies(begun.file, found.policies)
        latest = None if begun.file.against is None else RunReader(store, target.bucket, begun.file.against)
        return RunSoFar(state, target, latest, self._file, data)

    async def _ask(self) -> tuple[Connection, BucketFacts]:
        """Return the connection and the facts that the run's begin read: no call is sent."""
        assert self._file is not None  # a resumed run is loaded first
        facts = self._file.facts
        region = facts.region if isinstance(facts.region, str) else None
        return replace(self._connection, region=region or self._connection.region), facts

    def _reads_keys(self, facts: BucketFacts) -> bool:
        return not isinstance(facts.key_policies, Skipped)

    def _describer(self, before: RunSoFar, facts: BucketFacts, plan: Plan) -> Callable[[int], bytes] | None:
        """Return what makes the bytes of keys-RANGE.json; None if the run reads no policies of keys."""
        keys = self._keys
        return None if keys is None else lambda _: KeyFile(self.run_id, dict(keys.policies)).to_json()

    def _open_mixed(self, target: Target, facts: BucketFacts) -> AbstractAsyncContextManager[PageFacts]:
        """Open those rows of the report that the run's begin has spread to this range."""
        from auditor.audit.mixed.range_rows import open_range
        from auditor.audit.mixed.source import ReportLimits

        store, limits = self._places.store, ReportLimits.of(self._settings.keep)
        return open_range(store, self.run_id, self._range_id, target, facts, limits, self._outer_stop, self._clock)

    def counted(self) -> tuple[int, int, int, int]:
        """Return the present numbers of listed objects, findings, undecided objects and throttled calls."""
        coverage, findings = self._tally.coverage, sum(self._tally.findings.values())
        return coverage["listed"], findings, coverage["undecided"], self._caller.counts["throttled"]

    async def _end(self, ending: RunEnding, ended: bool) -> Summary:
        return await ending.leave_range()
