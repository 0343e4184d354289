"""End a divided run: add up its ranges, prove that they are the whole target, and write the reports of the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from auditor.audit.divided.begun import BegunFiles, read_begun
from auditor.audit.divided.keys import with_all_policies
from auditor.audit.divided.routed import RoutedManifests
from auditor.audit.divided.state import RangeState, range_states
from auditor.audit.report import page_of
from auditor.audit.resume import check_selection, judging
from auditor.audit.run_summary import RunEnd, summarize
from auditor.audit.sources.spread_file import RunReport
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.errors import RunComplete, RunStopped
from auditor.model.dates import iso_date
from auditor.model.finding import RuleUndecided
from auditor.model.json_codec import JsonError
from auditor.model.object import Skipped
from auditor.model.rollup import RollUps
from auditor.model.summary import Changes, Resume, Summary
from auditor.model.target import Target
from auditor.reports.changes import changes_since
from auditor.reports.first_steps import JudgedFor
from auditor.reports.rollup import RollUpBuilder, finished_rollups
from auditor.reports.summary import not_looked_at
from auditor.reports.trend import trend
from auditor.rules.plan import make_plan
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.documents import damaged
from auditor.runs.folder import RunFolder
from auditor.runs.latest import name_latest
from auditor.runs.paths import began_at, checkpoint_name
from auditor.runs.plan_file import NAME as PLAN_FILE
from auditor.runs.reading import RunReader
from auditor.runs.seal import SealedPart, sha256_of
from auditor.runs.tally import Tally
from auditor.s3.object_facts import NO_OBJECT_ACLS
from auditor.text import counted

_NAMED: Final = 20
"""Number of unfinished ranges that the summary names one by one."""


class Combined(Struct, frozen=True):
    """A run that was summed up. unfinished: IDs of the ranges that are not complete."""

    summary: Summary
    rollups: RollUps
    unfinished: tuple[str, ...]


class _Sums(Struct):
    """The counts of the ranges, added up. files: the SHA-256 of their files. holes: a phrase for each range that is not
    complete. unseen: phrases on what the S3 Inventory report of the run leaves out.
    """

    tally: Tally
    rollups: RollUpBuilder
    undecided: dict[str, RuleUndecided]
    reached: str | None
    parts: list[SealedPart] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    holes: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    lacks_acls: bool = False
    unseen: Sequence[str] = ()

    def named_holes(self) -> list[str]:
        """Return the first holes, and a phrase on the number of the others."""
        more = len(self.holes) - _NAMED
        rest = [f"the rest of {counted(more, 'further range')}"] if more > 0 else []
        return [*self.holes[:_NAMED], *rest]


def combine(
    target: Target,
    run_id: str,
    settings: Settings,
    places: Resources,
    *,
    seconds: float = 0.0,
    reason: str | None = None,
    time_left: Callable[[], float] = lambda: math.inf,
    batch_rows: int | None = None,
) -> Combined:
    """Sum up a divided run, and write its summary, page, roll-ups, seal and latest.json. Blocks.

    The run is complete if each range is, and if the parts of each have the lines that it counted. If not, the summary
    names what is missing, and the run can be resumed. Called again, it sums up what is there then. seconds: the
    duration of the run. reason: why the run was stopped; None to give the number of unfinished ranges. time_left:
    returns the seconds that this process still has. batch_rows: number of objects in a batch manifest; None for the
    usual one.

    The time grows with the number of ranges and parts, and with the objects that are left to S3 Batch Operations:
    RunStopped is raised if it does not suffice for these, and the next call continues.

    Raises RunMissing or RunChanged for a run that was not begun so, RunComplete if the run is complete already,
    RunDamaged for a checkpoint or part that cannot be read, and RunTaken if another process combines the run.
    """
    return _Combining(target, run_id, settings, places, time_left, batch_rows).work(seconds, reason)


class _Combining:
    def __init__(
        self,
        target: Target,
        run_id: str,
        settings: Settings,
        places: Resources,
        time_left: Callable[[], float],
        batch_rows: int | None,
    ) -> None:
        self._time_left = time_left
        self._batch_rows = batch_rows
        self._target = target
        self._settings = settings
        self._places = places
        self._store = places.store
        self._run = RunReader(places.store, target.bucket, run_id)
        self._algorithms = settings.algorithms if places.ledger is not None else None
        self._rules, self._selection = judging(settings, places)

    def work(self, seconds: float, reason: str | None) -> Combined:
        begun = read_begun(self._store, self._target, self._run.run_id)
        check_selection(begun.state, self._selection)
        report = RunReport(self._store, begun.path, self._run.run_id)
        if self._run.complete:
            report.forget()  # a process was killed between the end of the run and the deletion
            name_latest(self._run)
            raise RunComplete(f"run {self._run.run_id} is complete: there is nothing to sum up")
        before, (begun, keys) = begun, with_all_policies(self._store, begun)
        sums = self._added(begun)
        with self._folder(begun, sums) as folder:
            folder.prepare()
            if begun.data != before.data:
                self._store.put(f"{begun.path}/{BUCKET_FILE}", begun.data)
            folder.adopt(sums.parts, sums.files | keys)
            if sums.reached is not None:
                folder.passed(sums.reached)
            sums.unseen = report.unseen(sums.tally.unreported, mixed=self._settings.source == MIXED)
            summary = self._summary(begun, sums, folder.uri, seconds, reason, self._changes(before, sums))
            try:
                manifests = self._write_routed(begun, sums)
            except RunStopped:
                folder.save()  # the next process need not take the run from this one
                raise
            rollups = finished_rollups(sums.rollups, summary, trend(summary, self._earlier(begun)))
            page = page_of(summary, begun.file, rollups, self._places.index_link)
            summary = folder.finish(summary, page, rollups.to_json(), update_latest=True)
            if manifests is not None:
                manifests.forget()
        if summary.complete:
            report.forget()
        return Combined(summary, rollups, tuple(sums.unfinished))

    def _added(self, begun: BegunFiles) -> _Sums:
        plan = begun.plan
        rollups = RollUpBuilder()
        rollups.count_kinds(
            JudgedFor(begun.file.facts, self._settings.trusted, self._target.versions, iso_date(began_at(plan.run)))
        )
        undecided = {item.rule: item for item in make_plan(self._rules, begun.file.facts).undecided}
        sums = _Sums(Tally(), rollups, undecided, self._target.start_after)
        sums.tally.calls["list"] = plan.calls
        plan_data = self._store.get(f"{begun.path}/{PLAN_FILE}")
        sums.files = {BUCKET_FILE: sha256_of(begun.data), PLAN_FILE: sha256_of(plan_data or plan.to_json())}
        for one in range_states(self._store, plan):
            self._add(sums, one)
        return sums

    def _add(self, sums: _Sums, one: RangeState) -> None:
        if not sums.holes:
            sums.reached = one.reached if one.checkpoint is not None else sums.reached
        if one.fault is not None:
            sums.holes.append(one.hole)
            sums.unfinished.append(one.range.id)
        sums.parts += one.parts
        sums.files |= one.files
        state = one.checkpoint
        if state is None:
            return
        sums.tally.include(state.tally)
        sums.undecided |= {item.rule: item for item in state.rules_undecided if item.rule not in sums.undecided}
        sums.lacks_acls |= state.ended is not None and state.ended.lacks_acls
        if not state.begun:
            return
        try:
            sums.rollups.include(state.rollups)
        except JsonError as error:
            raise damaged(f"{self._run.uri}/{checkpoint_name(one.range.id)}", error) from error

    def _folder(self, begun: BegunFiles, sums: _Sums) -> RunFolder:
        return RunFolder(
            self._store,
            self._target.bucket,
            self._run.run_id,
            target=self._target,
            selection=self._selection,
            rules_undecided=tuple(sums.undecided.values()),
            tally=sums.tally,
            state=begun.state,
            described=begun.data,
            previous=begun.file.against,
            rollups=sums.rollups,
        )

    def _summary(
        self, begun: BegunFiles, sums: _Sums, out: str, seconds: float, reason: str | None, changes: Changes
    ) -> Summary:
        ask = begun.file.read[-1].ask
        acl = Skipped(NO_OBJECT_ACLS) if sums.lacks_acls else ask.acl
        left = f"{counted(len(sums.holes), 'range')} of {len(begun.plan.ranges):,} not complete"
        end = RunEnd(
            run=self._run.run_id,
            out=out,
            target=self._target,
            settings=self._settings,
            now=began_at(self._run.run_id),
            tally=sums.tally,
            rules_undecided=tuple(sums.undecided.values()),
            algorithms=self._algorithms,
            not_looked_at=[
                *not_looked_at(begun.file.facts, self._target, acl, ask.head),
                *sums.unseen,
                *sums.named_holes(),
            ],
            seconds=seconds,
            resume=Resume(self._run.run_id, sums.reached, reason or left) if sums.holes else None,
            changes=changes,
        )
        return summarize(end)

    def _changes(self, begun: BegunFiles, sums: _Sums) -> Changes:
        """Return the changes since the last run. begun: as it was before the ranges read policies of keys, which is how
        each range looked for causes.
        """
        return changes_since(sums.tally, self._earlier(begun), begun.file, complete=not sums.holes)

    def _earlier(self, begun: BegunFiles) -> RunReader | None:
        against = begun.file.against
        return None if against is None else RunReader(self._store, self._target.bucket, against)

    def _write_routed(self, begun: BegunFiles, sums: _Sums) -> RoutedManifests | None:
        """Write the manifests and jobs for the objects that are left to S3 Batch Operations; None if none is left."""
        if not sums.tally.routed["objects"] or self._places.ledger is None:
            return None
        facts, rows = begun.file.facts, self._batch_rows
        region = facts.region if isinstance(facts.region, str) else self._settings.region
        account = facts.account if isinstance(facts.account, str) else None
        made = RoutedManifests(self._run, self._store, self._target, sums.parts, self._time_left, rows=rows)
        made.write(self._places, self._settings, region, account)
        return made
