"""Fill a run: ask again the facts that it could not read, and write a new run with all its other lines as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.judging_configuration import judged_by, selection_of
from auditor.audit.record import RecordJudge
from auditor.audit.run_context import RunContext
from auditor.audit.sources.stored_objects import FillRecordJudge, StoredFindings, StoredObjects, stored_counts
from auditor.audit.sources.walk import RunObjects
from auditor.config.layers import Layer
from auditor.config.settings import Settings
from auditor.config.values import LIVE
from auditor.errors import RunComplete, UsageError
from auditor.model.bucket import BucketFacts
from auditor.model.object import Unread
from auditor.model.run_lines import FindingLine
from auditor.model.summary import Summary
from auditor.rules.base import Plan, make_plan
from auditor.rules.judge import Judge
from auditor.runs.paths import began_at
from auditor.runs.reading import RunReader, link_to
from auditor.runs.run_files import PLAN, Link, RunPlan
from auditor.runs.run_results import RunResults
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally
from auditor.s3.engines.base import Engine
from auditor.s3.object_reader import ObjectReader
from auditor.s3.relisting import Relisting

_CALLER: Final = ("own_id", "account")
"""The facts that tell who asks, and not how the bucket is."""
_NAMES: Final = BucketFacts.__struct_fields__


class Filling:
    """The run that an audit fills, and what the audit takes from it. given: the settings of connection and pace.

    file: run.json of the filled run, with its policies of KMS keys. settings, rules, selection: by which the new run
    judges. is_latest: True if the new run becomes the target's latest one.
    """

    def __init__(self, filled: RunReader, given: Settings) -> None:
        file, summary = filled.begun_with, complete_summary(filled)
        by = judged_by(file, f"{filled.uri}/{PLAN}", Layer({}, str))
        self.file = file
        self.rules = by.rules
        self.settings = _settings(given, by.settings, file, summary)
        self.selection = selection_of(by.rules, self.settings, ledger=False) | {"filled": filled.run_id}
        self.algorithms = summary.hashing.algorithms if summary.hashing else None
        self.is_latest = True
        self._filled = filled
        self._gone = by.gone
        self._has_object_holes = summary.coverage.undecided > 0
        self._link: Link | None = None
        self._bucket_lines: list[FindingLine] = []
        self._changed: Sequence[str] = ()

    def load(self, store: Store, latest: RunReader | None) -> None:
        """Read the rest of the filled run. latest: the target's latest complete run. Blocks."""
        self._link = link_to(store, self.file.target.bucket, self._filled.run_id)
        self._bucket_lines = RunResults(self._filled).bucket_findings()
        # A run after the filled one has newer facts: the next audit compares with that one.
        self.is_latest = latest is None or latest.run_id <= self._filled.run_id

    def new_facts(self, asked: BucketFacts) -> BucketFacts:
        """Return the facts of the bucket by which to judge. asked: those that were read just now. Raises RunComplete if
        there is nothing to fill.
        """
        facts = self.facts(self.file.facts, asked)
        if not self._has_object_holes and not _gained(self.file, facts):
            raise RunComplete(
                "there is nothing to fill: each object was read, and the bucket's unread settings still cannot be read"
            )
        return facts

    def facts(self, known: BucketFacts, asked: BucketFacts) -> BucketFacts:
        """Return the facts of the bucket by which to judge. known: those of the run so far, or of the filled run."""
        facts = _filled_facts(known, asked)
        self._changed = _changed_facts(self.file.facts, facts)
        return facts

    def plan(self, plan: RunPlan) -> RunPlan:
        """Return run.json of the new run. plan: that of a run which begins."""
        return replace(
            plan,
            target=self.file.target,
            now=self.file.now,
            ledger=self.file.ledger,
            selected=self.file.selected,
            configuration=self.file.configuration,
            filled=self._link,
            against=self._filled.run_id,
        )

    def calls(self, plan: Plan) -> int:
        """Return the largest number of calls for one object: all facts twice, and a page that shows if it is the
        same.
        """
        return 2 * plan.ask.calls + 1

    def first_tally(self) -> Tally:
        """Return the counts with which the new run begins."""
        return stored_counts(self._filled)

    def walk(
        self, run: RunContext, engine: Engine, reader: ObjectReader, judge: Judge, tally: Tally
    ) -> tuple[RunObjects, RecordJudge]:
        """Return the objects to audit, and what says which of their lines are recorded. reader: reads one object.
        judge: judges it. tally: the counts of the run.
        """
        keys = run.keys
        before = make_plan(self.rules, self.file.facts)
        objects = StoredObjects(
            self._filled,
            reader,
            judge,
            Relisting(engine, run.caller, run.target),
            decided=frozenset({item.rule for item in before.undecided} - {item.rule for item in run.judging.undecided}),
            began=began_at(run.run_id),
            first=run.target.start_after,
            knows_key=lambda key: keys is None or key in keys.policies,
            io=run.thread.run,
        )
        kept = StoredFindings(self.rules, self._gone)
        return objects, FillRecordJudge(judge, tally, objects, kept, self._bucket_lines)

    def unseen(self) -> Iterator[str]:
        """Yield phrases on further things that the run does not look at."""
        filled = self._filled.run_id
        yield f"changes since {self.file.now} of objects that run {filled} had read: this run asked for what it lacked"
        kept = [rule.id for rule in self.rules if rule.values and not self.settings.keep_metadata]
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
    return complete_summary(run).coverage.undecided > 0 or _has_unread(run.begun_with.facts)


def _settings(given: Settings, own: Settings, file: RunPlan, summary: Summary) -> Settings:
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
        key_policies=file.reads_keys,
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


def _changed_facts(known: BucketFacts, facts: BucketFacts) -> list[str]:
    """Return the names of the facts that the run knew, and that are others now."""
    names = (name for name in _NAMES if name not in (*_CALLER, "key_policies"))
    return [name for name in names if not _has_unread(old := getattr(known, name)) and old != getattr(facts, name)]


def _gained(file: RunPlan, facts: BucketFacts) -> bool:
    """True if a fact is known that was unread in the run, or may become known in the course of the fill."""
    if _has_unread(facts.key_policies):
        return True
    return any(_has_unread(old := getattr(file.facts, name)) and old != getattr(facts, name) for name in _NAMES)


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
