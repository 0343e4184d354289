"""Audit one range of a run that is divided into ranges of keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from auditor.aio.stop import Stop
from auditor.audit.begin import RunSoFar
from auditor.audit.context import RunContext
from auditor.audit.divided.begun import read_begun
from auditor.audit.divided.keys import check_keys, reads_keys, with_policies
from auditor.audit.ending import RunEnding
from auditor.audit.kind import RunKind
from auditor.audit.resume import begun_rollups, check_selection, judging
from auditor.audit.run import Audit
from auditor.audit.sources.walk import FactSource
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import RunComplete
from auditor.model.object import Skipped
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.checkpoint import Checkpoint, load_checkpoint
from auditor.runs.documents import damaged
from auditor.runs.folder import PART_LINES
from auditor.runs.key_file import KeyFile, keys_name, load_keys
from auditor.runs.paths import checkpoint_name
from auditor.runs.plan_file import numbered
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store
from auditor.s3.inventory.configured import AskPage


def range_audit(
    run_id: str,
    range_id: str,
    target: Target,
    settings: Settings,
    places: Resources,
    stop: Stop,
    *,
    hop: int = 0,
    part_lines: int = PART_LINES,
) -> Audit:
    """Return the audit of one range of a run that begin() has begun. It continues the range if that was begun.

    The range has the parts and the checkpoint with its ID. The facts of the bucket are those of bucket.json. The
    audit's run() returns the summary of the range, and writes none: combine() sums up the run. The summary's `resume`
    says how far an incomplete range came. run() raises, besides the errors of each audit, RunComplete for a complete
    range, and RunTaken if another process writes it.

    run_id: ID of the run. range_id: that of the range. target: the target of the whole run. settings: those with which
    the run was begun; max_rate, max_calls and max_cost are the range's share. hop: number of Lambda invocations before
    this one that worked on the range.
    """
    return Audit(
        target,
        settings,
        places,
        stop,
        kind=RangeRun(run_id, range_id, settings, places),
        run_id=run_id,
        hop=hop,
        hands_on=True,
        part_lines=part_lines,
    )


class RangeRun(RunKind):
    """One range of a divided run. run_id, range_id: IDs of the run and of the range."""

    def __init__(self, run_id: str, range_id: str, settings: Settings, places: Resources) -> None:
        rules, selection = judging(settings, places)
        super().__init__(
            rules,
            selection,
            range_id=range_id,
            records_bucket=range_id == numbered(1),
            describes=keys_name(range_id),
        )
        self._run_id = run_id
        self._settings = settings

    def load(self, store: Store, target: Target, run_id: str | None) -> RunSoFar:
        begun = read_begun(store, target, self._run_id)
        check_selection(begun.state, self.selection)
        mine = begun.plan.range(self.range_id)
        target = begun.plan.target_of(mine)
        state = load_checkpoint(store, target.bucket, self._run_id, self.range_id)
        if state is not None:
            self._check(state, target, f"{store.uri(f'{begun.path}/{checkpoint_name(self.range_id)}')}")
        check_keys(begun.file, self._settings)
        file, data = begun.file, b""
        if reads_keys(file) and (keys := load_keys(store, begun.path, self._run_id, self.range_id)) is not None:
            found, data = keys
            file = with_policies(file, found.policies)
        against = file.against
        latest = None if against is None else RunReader(store, target.bucket, against)
        return RunSoFar(state, target, latest, file, data, facts=file.facts, expected=mine.keys)

    def _check(self, state: Checkpoint, target: Target, place: str) -> None:
        """Raise RunComplete if the range is complete, RunDamaged if its checkpoint, at `place`, is damaged."""
        if state.ended is not None:
            raise RunComplete(f"range {self.range_id} of run {self._run_id} is complete: there is nothing to resume")
        try:
            if state.target != target:
                raise ValueError("it has different keys from the range in plan.json")
            begun_rollups(state)
        except ValueError as error:
            raise damaged(place, error) from error

    def reads_keys(self, run: RunContext) -> bool:
        return not isinstance(run.facts.key_policies, Skipped)

    def describer(self, run: RunContext) -> Callable[[int], bytes] | None:
        """Return a function that makes the bytes of keys-RANGE.json; None if the run reads no policies of keys."""
        keys = run.keys
        return None if keys is None else lambda _: KeyFile(run=run.run_id, policies=dict(keys.policies)).to_json()

    def open_inventory(self, run: RunContext, ask: AskPage) -> AbstractAsyncContextManager[FactSource]:
        """Open those rows of the report that the run's begin has spread to this range."""
        from auditor.audit.sources.inventory_by_range import open_range  # imports csv and tempfile

        return open_range(run, self.range_id)

    async def end(self, ending: RunEnding, *, hands_on: bool) -> Summary:
        return await ending.leave_range()
