"""Conclude a run: sum its ranges up, prove that they are the whole target, compare it with the last run, and write its
reports, its seal and its summary.

The summary and the page are made in one way for a run that ends, is judged again, or was killed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.audit.batch_manifests import BatchManifests
from auditor.audit.judging_configuration import begun_plan, judging
from auditor.audit.range_progress import RangeState, range_states
from auditor.audit.sources.spread_file import RunReport
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.config.values import MIXED
from auditor.model.access import Verdict
from auditor.model.dates import iso_date
from auditor.model.exception import ExceptionUse
from auditor.model.finding import RuleUndecided, Severity
from auditor.model.json_codec import JsonError
from auditor.model.object import Skipped
from auditor.model.rollup import NAME as ROLLUPS
from auditor.model.rollup import RollUps
from auditor.model.summary import (
    AcceptedHoles,
    CallCounts,
    Changes,
    Coverage,
    ExceptedCounts,
    Resume,
    Summary,
    UnreadCount,
)
from auditor.model.target import Target
from auditor.reports.changes import changes_since
from auditor.reports.first_steps import JudgedFor
from auditor.reports.rollup import RollUpBuilder, finished_rollups
from auditor.reports.summary import audiences_of, hashing_of, kept_of, kept_words, largest_first, not_looked_at
from auditor.reports.trend import trend
from auditor.rules import RULES
from auditor.rules.base import make_plan
from auditor.rules.exceptions import Exceptions
from auditor.runs.key_file import NAME as KEYS
from auditor.runs.key_file import KeyFile, StoredPolicies, stored_policies, with_policies
from auditor.runs.paths import checkpoint_name, run_path
from auditor.runs.reading import RunReader, compared_with
from auditor.runs.run_end import PAGE, RunClosing
from auditor.runs.run_files import RunPlan, SealedPart, damaged
from auditor.runs.stores.base import LockingStore
from auditor.runs.tally import Tally
from auditor.s3.gather import NO_OBJECT_ACLS
from auditor.text import counted
from auditor.verdict.trust import Trust

LOCK: Final = "end"
"""The name of the lock that the process holds in a directory while it ends a run of several ranges."""
_NAMED: Final = 20
"""Number of unfinished ranges that the summary names one by one."""


class RunSums(Struct):
    """The counts of a run, added up over its ranges.

    reached: the key up to which the lines are there without a gap. parts: returns the entries of all parts, once they
    are written. policies: those of KMS keys that the run has read. holes: a phrase for each range that is not complete.
    unfinished: the IDs of these ranges. lacks_acls: True if the server has no ACLs of objects. unseen: phrases on
    further things that the run did not look at. damaged: True if the files of a range contradict each other.
    """

    tally: Tally
    rollups: RollUpBuilder
    reached: str | None
    parts: Callable[[], Sequence[SealedPart]]
    policies: StoredPolicies = field(default_factory=dict)
    holes: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    lacks_acls: bool = False
    unseen: Sequence[str] = ()
    damaged: bool = False

    def named_holes(self) -> list[str]:
        """Return the first holes, and a phrase on the number of the others."""
        more = len(self.holes) - _NAMED
        rest = [f"the rest of {counted(more, 'further range')}"] if more > 0 else []
        return [*self.holes[:_NAMED], *rest]


class Concluded(Struct, frozen=True):
    """A run that was concluded. unfinished: IDs of the ranges that are not complete."""

    summary: Summary
    rollups: RollUps
    unfinished: tuple[str, ...] = ()


class RunConclusion(Struct, frozen=True, eq=False):
    """Concludes a run. All methods block.

    plan: its run.json. data: the bytes of that file. settings: those of this process. algorithms: the wanted digests
    that the summary counts; None without a ledger. is_latest: True if the run becomes the target's latest one when it
    is complete. seconds: returns its duration. reason: why it was stopped; None if it was not, or to give the number of
    unfinished ranges. earlier: the run with which it compares; None if there is none.
    """

    plan: RunPlan
    data: bytes
    settings: Settings
    places: Resources
    algorithms: Sequence[str] | None
    seconds: Callable[[], float]
    earlier: RunReader | None
    is_latest: bool = True
    reason: str | None = None

    def summary(self, sums: RunSums, changes: Changes | None = None) -> Summary:
        """Return the summary of the run by its present counts. Nothing is written. changes: those since the last run;
        None to look for them.
        """
        plan, holes = self.plan, sums.holes
        whole = with_policies(plan, sums.policies) if plan.reads_keys else plan
        acl = Skipped(NO_OBJECT_ACLS) if sums.lacks_acls else plan.ask.acl
        left = f"{counted(len(holes), 'range')} of {len(plan.ranges):,} not complete" if plan.divided else None
        rules = [rule for rule in RULES if rule.id in plan.selected]
        end = RunEnd(
            run=plan.run,
            out=self.places.store.uri(run_path(plan.target.bucket, plan.run)),
            target=plan.target,
            settings=self.settings,
            now=plan.now,
            tally=sums.tally,
            rules_undecided=make_plan(rules, plan.facts).undecided,
            algorithms=self.algorithms,
            not_looked_at=[
                *not_looked_at(plan.facts, plan.target, acl, plan.ask.head),
                *sums.unseen,
                *(sums.named_holes() if plan.divided else ()),
            ],
            seconds=self.seconds(),
            resume=Resume(plan.run, sums.reached, self.reason or left) if holes else None,
            changes=changes or changes_since(sums.tally, self.earlier, whole, complete=not holes),
        )
        return summarize(end)

    def finish(
        self,
        sums: RunSums,
        *,
        save: Callable[[], object] | None = None,
        write_first: bool = False,
        checkpoints: Sequence[str] | None = None,
        **batch: Any,
    ) -> Concluded:
        """Write the reports of the run, its seal and its summary.

        save: writes the last part and checkpoint of a range that this process has worked on. write_first: True if the
        reports need the lines of other processes. checkpoints: names of the files to delete once the run is complete;
        None for all that are there. batch: the arguments of BatchManifests. Raises RunStopped if the time does not
        suffice for all batch manifests: the next call continues.
        """
        plan = self.plan
        summary = self.summary(sums)
        routed = bool(sums.tally.routed["objects"]) and self.places.ledger is not None
        if save is not None and (write_first or routed):
            save()
            save = None
        manifests = self._write_routed(sums, batch) if routed else None
        rollups = finished_rollups(sums.rollups, summary, trend(summary, self.earlier))
        files = {ROLLUPS: rollups.to_json()}
        if plan.reads_keys:
            plan = with_policies(plan, sums.policies)
            files[KEYS] = KeyFile(run=plan.run, policies=sums.policies).to_json()
        files[PAGE] = page_of(summary, plan, rollups, self.places.index_link).encode()
        closing = RunClosing(self.places.store, self.plan, self.data, plan.against, checkpoints)
        summary = closing.finish(summary, files, sums.parts, save=save or (lambda: None), update_latest=self.is_latest)
        if manifests is not None:
            manifests.forget()
        return Concluded(summary, rollups, tuple(sums.unfinished))

    def _write_routed(self, sums: RunSums, batch: Mapping[str, Any]) -> BatchManifests:
        """Write the manifests and jobs for the objects that are left to S3 Batch Operations."""
        plan, facts = self.plan, self.plan.facts
        region = facts.region if isinstance(facts.region, str) else self.settings.region
        account = facts.account if isinstance(facts.account, str) else None
        run = RunReader(self.places.store, plan.target.bucket, plan.run)
        made = BatchManifests(run, plan.target, sums.parts(), **batch)
        made.write(self.places, self.settings, region, account)
        return made


def conclude_run(
    target: Target,
    run_id: str,
    settings: Settings,
    places: Resources,
    *,
    seconds: Callable[[], float] = lambda: 0.0,
    reason: str | None = None,
    time_left: Callable[[], float] = lambda: math.inf,
    batch_rows: int | None = None,
) -> Concluded:
    """Sum up the ranges of a run from its folder, and write its reports, its seal and its summary. Blocks.

    The run is complete if each range is, and if the parts of each have the lines that it counted. If not, the summary
    names what is missing, and the run can be resumed. Called again, it sums up what is there then. seconds: returns the
    duration of the run. reason: why the run was stopped; None to give the number of unfinished ranges. time_left:
    returns the seconds that this process still has. batch_rows: number of objects in a batch manifest; None for the
    usual one.

    The time grows with the number of ranges and parts, and with the objects that are left to S3 Batch Operations:
    RunStopped is raised if it does not suffice for these, and the next call continues.

    Raises RunMissing or RunChanged for a run that was not begun so, RunComplete if the run is complete already,
    RunDamaged for a checkpoint or part that cannot be read, and RunTaken if another process concludes the run.
    """
    store, run = places.store, RunReader(places.store, target.bucket, run_id)
    report = RunReport(store, run.path, run_id)
    with ExitStack() as stack:
        if isinstance(store, LockingStore):
            stack.callback(store.hold(run.path, LOCK))
        plan = begun_plan(run, target, settings, judging(settings, places)[1])
        sums = added_ranges(run, plan, settings)
        sums.unseen = report.unseen(sums.tally.unreported, mixed=settings.source == MIXED)
        conclusion = RunConclusion(
            plan,
            run.plan_data or b"",
            settings,
            places,
            algorithms=settings.algorithms if places.ledger is not None else None,
            seconds=seconds,
            earlier=compared_with(store, plan),
            reason=reason,
        )
        done = conclusion.finish(sums, time_left=time_left, rows=batch_rows)
        if done.summary.complete:
            report.forget()
    return done


def added_ranges(run: RunReader, plan: RunPlan, settings: Settings) -> RunSums:
    """Add the ranges of a run up by their checkpoints. Blocks. Raises RunDamaged for one that cannot be read."""
    parts: list[SealedPart] = []
    builder = RollUpBuilder()
    builder.count_kinds(JudgedFor(plan.facts, settings.trusted, plan.target.versions, iso_date(plan.now)))
    sums = RunSums(Tally(), builder, plan.target.start_after, lambda: parts)
    sums.tally.calls["list"] = plan.calls
    for one in range_states(run.store, plan):
        parts += one.parts
        _add(sums, run, one)
    if plan.reads_keys:
        sums.policies = stored_policies(run.store, run.path, plan, complete=False)
    return sums


def _add(sums: RunSums, run: RunReader, one: RangeState) -> None:
    if not sums.holes:
        sums.reached = one.reached if one.checkpoint is not None else sums.reached
    if one.fault is not None:
        sums.holes.append(one.hole)
        sums.unfinished.append(one.range.id)
    sums.damaged |= one.damaged
    state = one.checkpoint
    if state is None:
        return
    sums.tally.include(state.tally)
    sums.lacks_acls |= state.ended is not None and state.ended.lacks_acls
    if not state.begun:
        return
    try:
        sums.rollups.include(state.rollups)
    except JsonError as error:
        raise damaged(f"{run.uri}/{checkpoint_name(one.range.id)}", error) from error


class RunEnd(Struct, frozen=True, kw_only=True):
    """The facts of a run at its end, of which its summary is made.

    run: its ID. out: URI of its folder. settings: those by which it judged. now: the time by which exceptions hold, in
    ISO 8601 in UTC. tally: its counts. rules_undecided: the rules that lacked a fact of the bucket. algorithms: the
    wanted digests that the summary counts; None without a ledger. not_looked_at: phrases on the things that it did not
    look at. seconds: its duration. resume: the point from which it can be resumed; None for a complete run.
    """

    run: str
    out: str
    target: Target
    settings: Settings
    now: str
    tally: Tally
    rules_undecided: Sequence[RuleUndecided]
    algorithms: Sequence[str] | None
    not_looked_at: Sequence[str]
    seconds: float
    resume: Resume | None
    changes: Changes = Changes()


def summarize(end: RunEnd) -> Summary:
    """Make the summary of a run from its present counts. Further counting does not change the summary.

    Raises ValueError if the counts do not add up.
    """
    settings, tally, target, complete = end.settings, end.tally, end.target, end.resume is None
    tally.check(hashing=end.algorithms is not None)
    empty = target.lists_nothing(tally.coverage["listed"] + tally.coverage["delete_markers"])
    undecided, kept = tally.rules_undecided(end.rules_undecided), kept_of(tally)
    accepted_rules, exceptions = _exceptions(end, undecided)
    unread = largest_first(tally.unread).items()
    return Summary(
        run=end.run,
        out=end.out,
        target=target,
        engine=settings.engine,
        complete=complete,
        nothing_listed=complete and empty and not settings.allow_empty,
        coverage=Coverage(**tally.coverage),
        verdicts=dict(tally.verdicts),
        audiences=audiences_of(tally),
        trust_unused=Trust.of(settings.trusted).unused(tally.trusted),
        findings=dict(tally.findings),
        rules=largest_first(tally.rules),
        rules_undecided=undecided,
        unread=tuple(UnreadCount(*reason.partition(" ")[::2], number) for reason, number in unread),
        accepted=AcceptedHoles(tally.accepted, accepted_rules, largest_first(tally.failed_accepted)),
        changes=end.changes,
        excepted=ExceptedCounts(
            {verdict.value: tally.excepted_verdicts.get(verdict, 0) for verdict in Verdict},
            {severity.value: tally.excepted_findings.get(severity, 0) for severity in Severity},
            tally.accepted,
        ),
        exceptions=exceptions,
        hashing=None if end.algorithms is None else hashing_of(tally, end.algorithms),
        healed=tally.healed,
        calls=CallCounts(**tally.calls),
        kept=kept,
        not_looked_at=tuple(dict.fromkeys((*end.not_looked_at, *kept_words(kept)))),
        seconds=round(end.seconds, 1),
        resume=end.resume,
    )


def _exceptions(end: RunEnd, undecided: Sequence[RuleUndecided]) -> tuple[int, tuple[ExceptionUse, ...]]:
    """Return the number of these undecided rules that are accepted, and all exceptions with their states."""
    exceptions, tally = Exceptions(end.settings.exceptions, end.target.bucket, end.now[:10]), end.tally
    rules = exceptions.of_rules(undecided)
    used = [*rules.used, *rules.expired]
    return len(rules.used), exceptions.states(
        lambda name: tally.exceptions.get(name, 0) + used.count(name),
        lambda name: tally.shadowed.get(name, 0) + rules.shadowed.count(name),
    )


def page_of(summary: Summary, bucket: RunPlan, rollups: RollUps, index: str | None = None) -> str:
    """Return the page of a run as HTML. bucket: its run.json. index: relative address of the index page; None if
    there is none. The page's commands have the whole path of the run's folder.
    """
    from auditor.reports.page import build, render  # imports Jinja

    place = summary.out if "://" in summary.out else str(Path(summary.out).absolute())
    whole = replace(summary, out=place)
    return render.render("audit.html", build.page_data(whole, bucket, rollups, index))
