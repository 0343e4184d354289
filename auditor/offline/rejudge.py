"""Judge a run again from its folder: verdicts, findings and undecided lines anew, without a request to its bucket.

A value that a rule needs and the folder does not have is found out on the way, and named.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from auditor.audit.compare_with_last import OwnHistory
from auditor.audit.conclude_run import RunEnd, page_of, summarize
from auditor.audit.judging_configuration import JudgedBy, configuration_of, judge_of, selection_of
from auditor.audit.record import LineWriter, RunExceptions
from auditor.audit.sources.stored_objects import StoredFindings, StoredObject, StoredPart, stored_counts
from auditor.errors import OutputError, RunStopped
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts
from auditor.model.dates import iso_date
from auditor.model.finding import Judgement, RuleUndecided
from auditor.model.json_codec import plain
from auditor.model.line_records import routed_line
from auditor.model.object import Skipped
from auditor.model.rollup import NAME as ROLLUPS
from auditor.model.run_lines import FindingLine
from auditor.model.summary import Changes, Resume, Summary
from auditor.model.version import VERSION
from auditor.progress import Snapshot
from auditor.reports.changes import causes_between
from auditor.reports.first_steps import JudgedFor
from auditor.reports.rollup import RollUpBuilder, finished_rollups
from auditor.reports.summary import not_looked_at
from auditor.reports.trend import nights_of
from auditor.rules.base import Plan, Rule, make_plan
from auditor.rules.judge import Judge
from auditor.runs.key_file import NAME as KEYS
from auditor.runs.key_file import KeyFile
from auditor.runs.parts import Part
from auditor.runs.paths import FIRST, checkpoint_name, new_run_id, run_path
from auditor.runs.reading import RunReader, link_to
from auditor.runs.run_end import PAGE, RunClosing
from auditor.runs.run_files import PLAN, RunPlan, one_range
from auditor.runs.segment import Segment
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally
from auditor.text import counted, visible

ENGINE: Final = "none"
"""The name of the engine in the summary of a run that was judged again: no request was made."""
_AT_ONCE: Final = 1024
"""Number of objects after which the work looks if it is to stop."""

NOT_STORED: Final = "NotStored"
"""The error code of a rule that is undecided because the run folder does not have a value that it needs."""


class JudgeAgain:
    """Judges a run again, and writes the result into a new run folder. Call run() once; it blocks.

    The new folder has the parts of the run, with the same numbers. With the run's own configuration and the same
    version of the auditor, their bytes are the same.

    run: the run to judge. out: the store of the new folder. by: the configuration. stopped: returns True once the work
    is to stop. Raises UsageError if the run folder lacks the facts of the bucket.
    """

    def __init__(self, run: RunReader, out: Store, by: JudgedBy, stopped: Callable[[], bool] = lambda: False) -> None:
        self._run = run
        self._out = out
        self._by = by
        self._stopped = stopped
        self._file = run.begun_with
        self._target = self._file.target
        self._keeps_values = self._file.configuration.get("keep_metadata") is True
        self._now = _time(self._file, run)
        self._history = OwnHistory(self._file.now)
        self._stored = StoredFindings(by.rules, by.gone)
        self._tally = Tally()
        self._values = MissingValues(self._file, by)
        self._same = True  # the configuration is that of the run
        self._noted: tuple[Judge, int] | None = None
        self._started = time.monotonic()
        self.run_id = new_run_id(datetime.now(UTC), secrets.token_bytes(3))

    def run(self) -> Summary:
        """Judge all objects, write the run folder, and return the summary.

        Raises RunStopped if the work was stopped; the new folder then has no summary. Raises OutputError for a damaged
        run folder.
        """
        parts = self._run.by_part()
        self._tally = stored_counts(self._run)
        rollups = RollUpBuilder()
        exceptions = RunExceptions(self._by.settings, self._target.bucket, self._file.now, self._tally)
        facts = self._facts()
        plan = self._values.plan(facts)
        link = link_to(self._run.store, self._run.bucket_name, self._run.run_id)
        selection = selection_of(self._by.rules, self._by.settings, ledger=self._file.ledger)
        judged = replace(
            self._file,
            run=self.run_id,
            selected=tuple(rule.id for rule in self._by.rules),
            configuration={**configuration_of(self._by.settings), "keep_metadata": self._keeps_values},
            selection={**selection, "judged_from": self._run.run_id},
            facts=facts,
            auditor=VERSION,
            judged_from=link,
            source=None,
            exact=False,
            calls=0,
            ranges=one_range(self._target),
        )
        self._same = not causes_between(self._file, judged)
        policies = facts.key_policies
        written = judged if isinstance(policies, Skipped) else replace(judged, facts=replace(facts, key_policies={}))
        data = written.to_json()
        self._out.put(f"{run_path(self._target.bucket, self.run_id)}/{PLAN}", data)
        segment = Segment(
            self._out,
            self._target.bucket,
            self.run_id,
            tally=self._tally,
            part_seconds=math.inf,
            part_lines=2**63,
            fresh=True,
            rollups=rollups,
        )
        lines = LineWriter(segment, self._tally, exceptions, rollups, keeps_values=self._keeps_values)
        with segment:
            segment.prepare()
            self._judge_parts(lines, parts, facts, plan)
            summary = self._summary(lines, plan)
            groups = finished_rollups(rollups, summary, nights_of(self._run) if self._same else ())
            files = {PAGE: page_of(summary, judged, groups).encode(), ROLLUPS: groups.to_json()}
            if not isinstance(policies, Skipped):
                files[KEYS] = KeyFile(run=self.run_id, policies=policies).to_json()
            closing = RunClosing(self._out, written, data, None, [checkpoint_name(FIRST)])
            return closing.finish(summary, files, segment.sealed_parts, save=segment.save)

    def snapshot(self) -> Snapshot:
        """Return the present counts, for a progress line."""
        last = self._run.summary
        return Snapshot(
            what=visible(self._target.uri),
            objects=self._tally.coverage["listed"],
            seconds=time.monotonic() - self._started,
            detail=counted(sum(self._tally.findings.values()), "finding"),
            expected=last.coverage.listed if last else None,
        )

    def _facts(self) -> BucketFacts:
        facts, semantics = self._file.facts, self._by.settings.semantics
        return facts if semantics is None else replace(facts, semantics=semantics)

    def _judge_parts(
        self, lines: LineWriter, parts: list[tuple[int, dict[str, Part]]], facts: BucketFacts, plan: Plan
    ) -> None:
        trusted, versions = self._by.settings.trusted, self._target.versions
        lines.rollups.count_kinds(JudgedFor(facts, trusted, versions, self._now))
        judge = judge_of(self._by.settings, plan, facts, versions=versions, now=self._now)
        if not parts:
            self._write_bucket(lines, judge, [])
        for index, (number, files) in enumerate(parts):
            lines.segment.begin_part(number)
            part = StoredPart(self._run, number, files)
            if not index:
                self._write_bucket(lines, judge, part.bucket_findings())
            for count, stored in enumerate(part.objects()):
                if not count % _AT_ONCE and self._stopped():
                    raise RunStopped("the judging was stopped, and its run folder is incomplete: start it again")
                self._write(lines, judge, stored)

    def _write_bucket(self, lines: LineWriter, judge: Judge, stored: list[FindingLine]) -> None:
        findings = [*judge.bucket(), *self._stored.of_bucket(stored)]
        self._tally.trust(judge.trust.used)
        self._tally.add_findings(findings)
        excepted = lines.exceptions.bucket(findings)
        lines.bucket(findings, self._history.findings(findings, excepted, stored))

    def _write(self, lines: LineWriter, judge: Judge, stored: StoredObject) -> None:
        line, tally = stored.line, self._tally
        judgement = judge.object(line.evidence)
        self._values.note(judgement)
        judgement = self._stored.added(judgement, stored.findings)
        if (noted := (judge, judge.trust.number_used)) != self._noted:
            self._noted = noted
            tally.trust(judge.trust.used)
        tally.add(judgement)
        recorded = self._history.object(judgement, lines.exceptions.object(judgement), line, stored.findings)
        if lines.object(recorded, line.hashed, routed_line(stored.routed) if stored.routed else None):
            lines.segment.flush()

    def _summary(self, lines: LineWriter, plan: Plan) -> Summary:
        last = self._run.summary
        algorithms = last.hashing.algorithms if last and last.hashing else None
        try:
            self._tally.check(hashing=algorithms is not None)
        except ValueError as error:
            raise OutputError(
                f"{self._run.uri} is damaged: the counts in its checkpoints or its summary.json are not"
                " those of its objects: audit again"
            ) from error
        resume = None
        if not self._run.complete:
            resume = (last and last.resume) or Resume(
                self._run.run_id, self._run.last_key, "the judged run has not ended"
            )
        unseen = (
            last.not_looked_at if last else not_looked_at(self._file.facts, self._target, plan.ask.acl, plan.ask.head)
        )
        may_be_empty = last is None or not last.nothing_listed
        end = RunEnd(
            run=self.run_id,
            out=lines.segment.uri,
            target=self._target,
            settings=replace(self._by.settings, engine=ENGINE, allow_empty=may_be_empty),
            now=self._file.now,
            tally=self._tally,
            rules_undecided=self._values.undecided(plan.undecided),
            algorithms=algorithms,
            not_looked_at=[*unseen, *self._words()],
            seconds=time.monotonic() - self._started,
            resume=resume,
            changes=self._changes(last),
        )
        return summarize(end)

    def _changes(self, last: Summary | None) -> Changes:
        """Return the changes that the run counted. With another configuration nobody has counted them."""
        if self._same and last is not None:
            return last.changes
        return Changes(why_not="judged again with other rules or settings: compare the two runs with `auditor diff`")

    def _words(self) -> Iterator[str]:
        """Yield phrases on the things that the judging did not look at, besides those that the run did not."""
        run = self._run.run_id
        yield f"changes since {self._file.now}: judged again from the facts of run {run}, without a request"
        yield from self._values.words(run)
        for rule in sorted(self._by.gone):
            yield f"rule {visible(rule)}, which this version does not have: its findings stay as that run found them"


def _time(file: RunPlan, run: RunReader) -> datetime:
    try:
        return iso_date(file.now)
    except ValueError as error:
        raise OutputError(f"{run.uri}/{PLAN} is damaged (its time): audit again") from error


class MissingValues:
    """The values that a run stored, and those that the rules needed and did not find. file: of the run. by: the
    configuration by which the run is judged again.
    """

    def __init__(self, file: RunPlan, by: JudgedBy) -> None:
        self._file = file
        self._by = by
        self._unstored: Counter[str] = Counter()
        """Number of objects by the ID of each rule that could not judge them, for lack of a stored value."""
        self._lacking: dict[str, RuleUndecided] = {}

    def plan(self, facts: BucketFacts) -> Plan:
        """Return the plan, without the rules whose facts the run did not ask for. facts: those by which to judge."""
        plan = make_plan(self._by.rules, facts)
        lacking = [item for rule in plan.object_rules if (item := self._not_asked(rule, facts))]
        names = {item.rule for item in lacking}
        ready = tuple(rule for rule in plan.object_rules if rule.id not in names)
        return replace(plan, object_rules=ready, undecided=(*plan.undecided, *lacking))

    def _not_asked(self, rule: Rule, facts: BucketFacts) -> RuleUndecided | None:
        """Return the rule as undecided if it is new to the run, and the run did not ask for a fact that it needs."""
        ask = self._file.ask
        if rule.id in self._file.selected:
            return None
        if ask.head is not None and rule.needs("head"):
            return RuleUndecided(rule.id, "HeadObject", NOT_STORED)
        if ask.acl is not None and rule.needs("acl") and facts.ownership != BUCKET_OWNER_ENFORCED:
            return RuleUndecided(rule.id, "GetObjectAcl", NOT_STORED)
        return None

    def note(self, judgement: Judgement) -> None:
        """Note the rules that lacked a value of this object."""
        for rule in judgement.unstored:
            self._unstored[rule] += 1
            if rule not in self._lacking and not self._judged_before(rule):
                self._lacking[rule] = RuleUndecided(rule, "HeadObject", NOT_STORED)
        self._note_owner(judgement)

    def _note_owner(self, judgement: Judgement) -> None:
        """Note the rules that the run did not judge by, and that lack the owner of this object."""
        if isinstance(judgement.evidence.owner, Skipped) and judgement.access is not None:
            for rule in self._by.rules:
                if "owner" in rule.reads and rule.id not in self._file.selected:
                    self._lacking[rule.id] = RuleUndecided(rule.id, "GetObjectAcl", NOT_STORED)

    def _judged_before(self, rule: str) -> bool:
        """True if the run was judged by this rule with the present options."""
        before: Mapping[str, Any] = self._file.configuration.get("rules") or {}
        return rule in self._file.selected and before.get(rule) == plain(self._by.settings.rules.get(rule))

    def undecided(self, known: Sequence[RuleUndecided]) -> tuple[RuleUndecided, ...]:
        """Return `known`, the rules that a plan names as undecided, and those that lacked a value, each once."""
        found = {item.rule: item for item in known}
        for rule in sorted(self._lacking.keys() - found):
            found[rule] = self._lacking[rule]
        return tuple(found.values())

    def words(self, run: str) -> Iterator[str]:
        """Yield a phrase for each rule that kept its findings for lack of a value. run: ID of the run."""
        for rule, number in sorted(self._unstored.items()):
            yield f"values that run {run} did not store: {rule} keeps its result on {counted(number, 'object')}"
