"""Fill a run: ask again the facts that it could not read, and write a new run with all its other lines as they are."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.begin import RunSoFar
from auditor.audit.context import RunContext
from auditor.audit.judged_by import JudgedBy, judged_by
from auditor.audit.kind import RunKind
from auditor.audit.record_judge import RecordJudge
from auditor.audit.run import Audit
from auditor.audit.sources.stored_objects import FillRecordJudge, StoredObjects
from auditor.audit.sources.walk import RunObjects
from auditor.audit.stored import StoredFindings, stored_counts
from auditor.config.layers import Layer
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.config.values import LIVE
from auditor.errors import RunComplete, UsageError
from auditor.model.bucket import BucketFacts
from auditor.model.object import Skipped, Unread
from auditor.model.run_lines import FindingLine
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.model.version import VERSION
from auditor.rules.judge import Judge
from auditor.rules.plan import Plan, make_plan
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.bucket_file import BucketFile, ReadFacts
from auditor.runs.folder import PART_LINES
from auditor.runs.past import PastRun
from auditor.runs.paths import began_at, later_run_id, new_run_id
from auditor.runs.reading import RunReader, link_to
from auditor.runs.seal import Link
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally
from auditor.s3.engines.base import Engine
from auditor.s3.object_reader import ObjectReader
from auditor.s3.relisting import Relisting

_CALLER: Final = ("own_id", "account")
"""The facts that tell who asks, and not how the bucket is."""
_NAMES: Final = BucketFacts.__struct_fields__


def fill_audit(
    run: RunReader,
    settings: Settings,
    places: Resources,
    stop: Stop,
    *,
    began: Callable[[str], None] | None = None,
    resume: str | None = None,
    part_lines: int = PART_LINES,
) -> Audit:
    """Return the audit that fills a run. Blocks a moment to read the run's files.

    The new run has the filled run's target, configuration and time of judging, and is written beside it. Objects of
    which all was read keep their lines, unless a fact of the bucket is known now that was not.

    run: a complete run, with its files. settings: connection and pace; the rest comes from the run. places: the store
    of the run folders. resume: ID of an earlier fill of the same run, to continue it. Raises UsageError if the run
    cannot be filled.
    """
    file, summary = run.begun_with, complete_summary(run)
    by = judged_by(file, f"{run.uri}/{BUCKET_FILE}", Layer({}, str))
    return Audit(
        file.target,
        _settings(settings, by.settings, file, summary),
        places,
        stop,
        kind=FillRun(run, file, by, summary),
        began=began,
        run_id=resume or later_run_id(new_run_id(datetime.now(UTC), secrets.token_bytes(3)), run.run_id),
        resume=resume is not None,
        part_lines=part_lines,
    )


class FillRun(RunKind):
    """A run that fills another one. filled: the run with holes. file, summary: of that run. by: its configuration."""

    def __init__(self, filled: RunReader, file: BucketFile, by: JudgedBy, summary: Summary) -> None:
        super().__init__(by.rules, {"filled": filled.run_id}, now=file.now)
        self._filled = filled
        self._file = file
        self._gone = by.gone
        self._hashed = summary.hashing
        self._has_object_holes = summary.coverage.undecided > 0
        self._link: Link | None = None
        self._bucket_lines: list[FindingLine] = []
        self._changed: Sequence[str] = ()

    def load(self, store: Store, target: Target, run_id: str | None) -> RunSoFar:
        before = super().load(store, target, run_id)
        self._link = link_to(store, target.bucket, self._filled.run_id)
        self._bucket_lines = PastRun(self._filled).bucket_findings()
        # A run after the filled one has newer facts: the next audit compares with that one.
        is_latest = before.latest is None or before.latest.run_id <= self._filled.run_id
        return replace(before, latest=self._filled, is_latest=is_latest)

    def facts(self, asked: BucketFacts, before: RunSoFar) -> BucketFacts:
        known = before.bucket.facts if before.bucket else self._file.facts
        facts = _filled_facts(known, asked)
        self._changed = _changed_facts([one.facts for one in self._file.read], facts)
        if before.state is None and not self._has_object_holes and not _gained(self._file, facts):
            raise RunComplete(
                "there is nothing to fill: each object was read, and the bucket's unread settings still cannot be read"
            )
        return facts

    def first_tally(self) -> Tally:
        return stored_counts(self._filled)

    def bucket_file(self, run: RunContext, first_part: int) -> BucketFile:
        return replace(
            self._file,
            run=run.run_id,
            read=(ReadFacts(first_part, run.facts, run.plan.ask),),
            auditor=VERSION,
            judged_from=None,
            filled=self._link,
            against=run.against,
        )

    def calls_per_object(self, plan: Plan, settings: Settings) -> int:
        return 2 * plan.ask.calls + 1  # all facts twice, and a page that shows if the object is the same

    def objects(
        self, run: RunContext, engine: Engine, reader: ObjectReader, judge: Judge, tally: Tally
    ) -> tuple[RunObjects, RecordJudge]:
        keys = run.keys
        objects = StoredObjects(
            self._filled,
            reader,
            judge,
            Relisting(engine, run.caller, run.target),
            decided=self._undecided_before() - {item.rule for item in run.plan.undecided},
            began=began_at(run.run_id),
            first=run.target.start_after,
            knows_key=lambda key: keys is None or key in keys.policies,
            io=run.thread.run,
        )
        kept = StoredFindings(self.rules, self._gone)
        return objects, FillRecordJudge(judge, tally, objects, kept, self._bucket_lines)

    def _undecided_before(self) -> frozenset[str]:
        """Return the IDs of the rules that were undecided in a part of the filled run, because a fact of the bucket
        could not be read. A resumed run reads these facts once in each process.
        """
        plans = (make_plan(self.rules, one.facts) for one in self._file.read)
        return frozenset(item.rule for plan in plans for item in plan.undecided)

    def algorithms(self, run: RunContext) -> Sequence[str] | None:
        return self._hashed.algorithms if self._hashed else None

    def unseen(self, run: RunContext, tally: Tally) -> Iterable[str]:
        filled = self._filled.run_id
        yield f"changes since {self._file.now} of objects that run {filled} had read: this run asked for what it lacked"
        kept = [rule.id for rule in self.rules if rule.values and not run.settings.keep_metadata]
        kept += [rule.id for rule in self.rules if "digests" in rule.reads]
        if kept:
            rules = ", ".join(kept)
            yield f"values that run {filled} did not store: {rules} keep their results on objects that it had read"
        if self._changed:
            yield f"one state of the bucket: {', '.join(self._changed)} changed since, and every object is judged by it"


def complete_summary(run: RunReader) -> Summary:
    """Return the summary of a run that can be filled. Raises UsageError if the run has not ended."""
    summary = run.summary
    if summary is None or not summary.complete:
        raise UsageError(
            f"run {run.run_id} is not complete, and only a complete run can be filled: complete it first, with the"
            f" same audit and --resume {run.run_id}"
        )
    return summary


def has_holes(run: RunReader) -> bool:
    """True if a fact of an object or of the bucket could not be read in the run: else there is nothing to ask again."""
    file = run.begun_with
    return complete_summary(run).coverage.undecided > 0 or any(_has_unread(one.facts) for one in file.read)


def _settings(given: Settings, own: Settings, file: BucketFile, summary: Summary) -> Settings:
    """Return the settings of a fill. given: those of connection and pace. own: those by which the run judges."""
    return replace(
        given,
        rules=own.rules,
        trusted=own.trusted,
        exceptions=own.exceptions,
        keep_metadata=own.keep_metadata,
        only=(),
        ignore=(),
        level=None,
        versions=file.target.versions,
        semantics=file.facts.semantics,
        key_policies=not isinstance(file.facts.key_policies, Skipped),
        algorithms=summary.hashing.algorithms if summary.hashing else given.algorithms,
        source=LIVE,
        ledger=None,
        queue=None,
        hash=False,
        batch_over=None,
        batch_manifest=None,
    )


def _filled_facts(known: BucketFacts, now: BucketFacts) -> BucketFacts:
    """Return one state of the bucket: the facts that were read now, and those that only the run could read.

    known: the facts of the run. now: the facts that were read now, perhaps by another caller. An account that the run
    knew stays the caller's: the other facts were found by it.
    """
    values = {name: _newer(getattr(known, name), getattr(now, name)) for name in _NAMES}
    if any(_differ(getattr(known, name), getattr(now, name)) for name in _CALLER):
        values |= {name: getattr(known, name) for name in _CALLER}
    return replace(now, **{**values, "semantics": known.semantics, "key_policies": known.key_policies})


def _changed_facts(known: Iterable[BucketFacts], facts: BucketFacts) -> list[str]:
    """Return the names of the facts that the run knew, and that are others now."""
    states = list(known)
    return [
        name
        for name in _NAMES
        if name not in (*_CALLER, "key_policies")
        and any(not _has_unread(old := getattr(one, name)) and old != getattr(facts, name) for one in states)
    ]


def _gained(file: BucketFile, facts: BucketFacts) -> bool:
    """True if a fact is known that was unread in the run, or may become known in the course of the fill."""
    if _has_unread(facts.key_policies):
        return True
    return any(
        _has_unread(old := getattr(one.facts, name)) and old != getattr(facts, name)
        for one in file.read
        for name in _NAMES
    )


def _has_unread(value: Any) -> bool:
    """True if the fact, or a part of it, could not be read."""
    if isinstance(value, Unread):
        return True
    if isinstance(value, Mapping):
        return any(map(_has_unread, value.values()))
    if isinstance(value, tuple):
        return any(map(_has_unread, value))
    return isinstance(value, Struct) and any(_has_unread(getattr(value, name)) for name in value.__struct_fields__)


def _newer(known: Any, now: Any) -> Any:
    return known if isinstance(now, Unread) and not isinstance(known, Unread) else now


def _differ(known: Any, now: Any) -> bool:
    return isinstance(known, str) and isinstance(now, str) and known != now
