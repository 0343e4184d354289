"""Judge a run again from its folder: verdicts, findings and undecided lines anew, without a request to its bucket."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from auditor.audit.compare_with_last import OwnHistory
from auditor.audit.excepting import RunExceptions
from auditor.audit.judged_by import JudgedBy, configuration_of, judge_of
from auditor.audit.line_writer import LineWriter
from auditor.audit.report import page_of
from auditor.audit.run_summary import RunEnd, summarize
from auditor.audit.stored import StoredFindings, StoredObject, StoredPart, stored_counts
from auditor.errors import OutputError, RunStopped
from auditor.model.bucket import BucketFacts
from auditor.model.dates import iso_date
from auditor.model.line_records import routed_line
from auditor.model.run_lines import FindingLine
from auditor.model.summary import Changes, Resume, Summary
from auditor.model.version import VERSION
from auditor.offline.stored_values import StoredValues
from auditor.progress import Snapshot
from auditor.reports.changes import causes_between
from auditor.reports.first_steps import JudgedFor
from auditor.reports.rollup import RollUpBuilder, finished_rollups
from auditor.reports.summary import not_looked_at
from auditor.reports.trend import nights_of
from auditor.rules.judge import Judge
from auditor.rules.plan import Plan
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.bucket_file import BucketFile, ReadFacts
from auditor.runs.folder import RunFolder
from auditor.runs.parts import Part
from auditor.runs.paths import UNDIVIDED, checkpoint_name, new_run_id
from auditor.runs.reading import RunReader, link_to
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally
from auditor.text import counted, visible

ENGINE: Final = "none"
"""The name of the engine in the summary of a run that was judged again: no request was made."""
_AT_ONCE: Final = 1024
"""Number of objects after which the work looks if it is to stop."""


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
        self._values = StoredValues(self._file, by)
        self._same = True  # the configuration is that of the run
        self._noted: tuple[Judge, int] | None = None
        self._started = time.monotonic()
        self.run_id = new_run_id(datetime.now(UTC), secrets.token_bytes(3))

    def run(self) -> Summary:
        """Judge all objects, write the run folder, and return the summary.

        Raises RunStopped if the work was stopped; the new folder then has no summary. Raises OutputError for a damaged
        run folder.
        """
        read = tuple(replace(one, facts=self._facts(one)) for one in self._file.read)
        parts = self._run.by_part()
        self._tally = stored_counts(self._run)
        rollups = RollUpBuilder()
        exceptions = RunExceptions(self._by.settings, self._target.bucket, self._file.now, self._tally)
        plans = self._values.plans(read)
        link = link_to(self._run.store, self._run.bucket_name, self._run.run_id)
        judged = replace(
            self._file,
            run=self.run_id,
            selected=tuple(rule.id for rule in self._by.rules),
            configuration={**configuration_of(self._by.settings), "keep_metadata": self._keeps_values},
            read=read,
            auditor=VERSION,
            judged_from=link,
        )
        self._same = not causes_between(self._file, judged)
        file = judged.to_json()
        folder = RunFolder(
            self._out,
            self._target.bucket,
            self.run_id,
            target=self._target,
            selection={"judged_from": self._run.run_id},
            rules_undecided=plans[-1].undecided,
            tally=self._tally,
            part_seconds=math.inf,
            part_lines=2**63,
            fresh=True,
            describe=lambda first_part: file,
            rollups=rollups,
        )
        lines = LineWriter(folder, self._tally, exceptions, rollups, keeps_values=self._keeps_values)
        with folder:
            folder.prepare()
            self._judge_parts(lines, parts, read, plans)
            summary = self._summary(lines, plans[-1])
            groups = finished_rollups(rollups, summary, nights_of(self._run) if self._same else ())
            page = page_of(summary, judged, groups)
            return folder.finish(summary, page, groups.to_json())

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

    def _facts(self, one: ReadFacts) -> BucketFacts:
        semantics = self._by.settings.semantics
        return one.facts if semantics is None else replace(one.facts, semantics=semantics)

    def _judge_parts(
        self,
        lines: LineWriter,
        parts: list[tuple[int, dict[str, Part]]],
        read: tuple[ReadFacts, ...],
        plans: list[Plan],
    ) -> None:
        trusted, versions = self._by.settings.trusted, self._target.versions
        lines.rollups.count_kinds(JudgedFor(read[-1].facts, trusted, versions, self._now))
        judges = {one.first_part: self._judge(one, plan) for one, plan in zip(read, plans, strict=True)}
        if not parts:
            self._write_bucket(lines, judges[read[0].first_part], [])
        for index, (number, files) in enumerate(parts):
            lines.folder.begin_part(number)
            judge = judges[max(first for first in judges if first <= number)]
            part = StoredPart(self._run, number, files)
            if not index:
                self._write_bucket(lines, judge, part.bucket_findings())
            for count, stored in enumerate(part.objects()):
                if not count % _AT_ONCE and self._stopped():
                    raise RunStopped("the judging was stopped, and its run folder is incomplete: start it again")
                self._write(lines, judge, stored)

    def _judge(self, one: ReadFacts, plan: Plan) -> Judge:
        return judge_of(self._by.settings, plan, one.facts, versions=self._target.versions, now=self._now)

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
            lines.folder.flush()

    def _summary(self, lines: LineWriter, plan: Plan) -> Summary:
        last = self._run.summary
        algorithms = last.hashing.algorithms if last and last.hashing else None
        try:
            self._tally.check(hashing=algorithms is not None)
        except ValueError as error:
            raise OutputError(
                f"{self._run.uri} is damaged: the counts in its {checkpoint_name(UNDIVIDED)} or summary.json are not"
                " those of its objects: audit again"
            ) from error
        resume = None
        if not self._run.complete:
            state = self._run.checkpoint
            resume = (last and last.resume) or Resume(
                self._run.run_id, state.start_after if state else None, "the judged run has not ended"
            )
        unseen = (
            last.not_looked_at if last else not_looked_at(self._file.facts, self._target, plan.ask.acl, plan.ask.head)
        )
        may_be_empty = last is None or not last.nothing_listed
        end = RunEnd(
            run=self.run_id,
            out=lines.folder.uri,
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
        if changed := self._file.changed_facts():
            yield f"one state of the bucket: {', '.join(changed)} changed while the run was interrupted"


def _time(file: BucketFile, run: RunReader) -> datetime:
    try:
        return iso_date(file.now)
    except ValueError as error:
        raise OutputError(f"{run.uri}/{BUCKET_FILE} is damaged (its time): audit again") from error
