"""Compare two runs of one target: read the lines of both run folders side by side, and yield the changes key by key, in
bounded memory. Print them as a table that names the first of each kind, or as JSON lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Protocol

from msgspec import Struct

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.json_codec import plain
from auditor.model.object import Outcome
from auditor.model.run_lines import FindingLine, PastObject, Seen
from auditor.model.summary import ChangeKind, Changes, Summary
from auditor.reports.changes import cause_words, causes_between, changes_of, moved_by
from auditor.reports.compare import (
    added_step,
    bucket_kind,
    fingerprints,
    judged_rules,
    kept_step,
    lost_kind,
    verdict_of,
    verdict_step,
    worsening,
)
from auditor.reports.text_table import TableLayout
from auditor.runs.bucket_file import BucketFile
from auditor.text import enumerated, visible

SHOWN: Final = 5
"""Number of changes of each kind that the table names."""
_KEY: Final = itemgetter(0)
_PLACE: Final = itemgetter(0, 1)
_Versions = dict[str | None, PastObject]
_OF_FINDING: Final = ("rule", "severity", "grantee", "permission", "fingerprint", "since")


class RunChange(Struct, frozen=True):
    """One change of a finding or of a verdict between two runs. key: None for a finding on the bucket.

    finding: the finding as the new run has it, or as the old run had it if the new run does not; None for a change of a
    verdict. before, after: the verdict in the old and in the new run, None where the run has no such object; both None
    for a change of a finding.
    """

    kind: ChangeKind
    key: str | None
    version_id: str | None
    finding: FindingLine | None = None
    before: Verdict | None = None
    after: Verdict | None = None


class ComparedRun(Protocol):
    """The interface of a run that diff() compares. results() yields its objects in key order."""

    @property
    def run_id(self) -> str: ...
    @property
    def summary(self) -> Summary | None: ...
    @property
    def bucket_file(self) -> BucketFile | None: ...
    @property
    def last_key(self) -> str | None: ...
    def bucket_findings(self) -> Iterable[FindingLine]: ...
    def results(self) -> Iterable[PastObject]: ...


def diff(old: ComparedRun, new: ComparedRun) -> Iterator[RunChange]:
    """Yield the changes from the run `old` to the run `new` of the same target, in key order.

    `auditor.open_run()` returns a run that can be compared. Raises UsageError if the runs are of different targets.
    """
    return Diff(old, new).changes()


class Diff:
    """The changes between two runs of one target. They are counted while changes() yields them."""

    def __init__(self, old: ComparedRun, new: ComparedRun) -> None:
        self._old, self._new = old, new
        self._counts: Counter[str] = Counter()
        self._causes: tuple[str, ...] = ()
        first, second = old.bucket_file, new.bucket_file
        if first and second:
            if first.target != second.target:
                raise UsageError(
                    f"the runs have different targets or key ranges, {visible(first.target.uri)} and"
                    f" {visible(second.target.uri)}: compare two runs of one target"
                )
            self._causes = causes_between(first, second)
        self._old_rules, self._new_rules = _rules(old), _rules(new)
        self._worse = worsening(first)
        self._old_end, self._new_end = _end(old), _end(new)

    @property
    def counts(self) -> Changes:
        """The changes so far, in the form of a summary."""
        return changes_of(self._counts, self._old.run_id, None, self._causes)

    def changes(self) -> Iterator[RunChange]:
        """Yield the changes in key order, those of findings on the bucket first. Call this once."""
        yield from self._bucket()
        for key, old, new in _joined(self._old.results(), self._new.results()):
            for version_id in {**new, **old}:
                yield from self._object(key, version_id, old.get(version_id), new.get(version_id))

    def _bucket(self) -> Iterator[RunChange]:
        before = fingerprints(self._old.bucket_findings())
        for line in self._new.bucket_findings():
            yield from self._finding(line, before.pop(line.fingerprint, None), None)
        for line in before.values():
            yield self._change(bucket_kind(line.rule, self._new_rules or ()), line)

    def _object(
        self, key: str, version_id: str | None, old: PastObject | None, new: PastObject | None
    ) -> Iterator[RunChange]:
        before = _seen(old, key, self._old_end)
        after = _seen(new, key, self._new_end)
        if (before is None or before.plain) and (after is None or after.plain):
            return
        step = verdict_step(before, after)
        if step.kind is not None:
            self._counts[f"verdict {verdict_of(step.kind, before, after).value} {step.kind.value}"] += 1
            for cause in moved_by(self._causes, step.kind, before, after):
                self._counts[f"cause {cause}"] += 1
            words = (old.seen.verdict if old else None, new.seen.verdict if new else None)
            yield RunChange(step.kind, key, version_id, None, *words)
        lost = fingerprints(old.findings if old else ())
        for line in new.findings if new else ():
            yield from self._finding(line, lost.pop(line.fingerprint, None), before)
        for line in lost.values():
            yield self._change(lost_kind(line.rule, after, self._new_rules or ()), line)

    def _finding(self, line: FindingLine, old: FindingLine | None, before: Seen | None) -> Iterator[RunChange]:
        added = added_step(line.rule, before, self._old_rules, line.exception, self._worse)
        kind = added.kind if old is None else kept_step(old, line.exception).kind
        if kind is not None:
            yield self._change(kind, line)

    def _change(self, kind: ChangeKind, line: FindingLine) -> RunChange:
        self._counts[f"finding {line.severity.value} {kind.value}"] += 1
        return RunChange(kind, line.key, line.version_id, line)


_UNSEEN: Final = Seen(Outcome.UNDECIDED, Verdict.UNKNOWN)
"""Stands for the results of an object that an incomplete run did not reach."""


def _seen(one: PastObject | None, key: str, end: str | None) -> Seen | None:
    """Return a run's results of an object. end: the last key of a run that is not complete."""
    if one is not None:
        return one.seen
    return _UNSEEN if end is not None and key > end else None


def _rules(run: ComparedRun) -> Collection[str] | None:
    """Return the IDs of the rules that the run judged; None if it does not say. A run that was killed before its first
    part has judged none.
    """
    file, summary = run.bucket_file, run.summary
    if summary is None and run.last_key is None:
        return ()
    return None if file is None else judged_rules(file, summary.rules_undecided if summary else ())


def _end(run: ComparedRun) -> str | None:
    """Return the last key of a run that is not complete; None for a complete run."""
    return None if run.summary is not None and run.summary.complete else run.last_key or ""


def _joined(old: Iterable[PastObject], new: Iterable[PastObject]) -> Iterator[tuple[str, _Versions, _Versions]]:
    """Yield each key with its objects in both runs. Keys come in the order of their code points, as S3 lists them."""
    merged = merge(((one.key, 0, one) for one in old), ((one.key, 1, one) for one in new), key=_PLACE)
    for key, group in groupby(merged, key=_KEY):
        found: tuple[_Versions, _Versions] = ({}, {})
        for _, side, one in group:
            found[side][one.version_id] = one
        yield key, *found


class FirstChanges:
    """Keeps the first changes of each kind, of verdicts before those of findings."""

    def __init__(self) -> None:
        self._first: dict[tuple[ChangeKind, bool], list[RunChange]] = {}

    def add(self, change: RunChange) -> None:
        kept = self._first.setdefault((change.kind, change.finding is None), [])
        if len(kept) < SHOWN:
            kept.append(change)

    def of(self, kind: ChangeKind) -> list[RunChange]:
        return [*self._first.get((kind, True), []), *self._first.get((kind, False), [])][:SHOWN]


def change_line(change: RunChange) -> dict[str, Any]:
    """Return a change as a JSON value, in one form for verdicts and findings."""
    found: dict[str, Any] = plain(
        {
            "kind": change.kind,
            "of": "verdict" if change.finding is None else "finding",
            "key": change.key,
            "version_id": change.version_id,
            "before": change.before,
            "after": change.after,
            **{name: getattr(change.finding, name, None) for name in _OF_FINDING},
        }
    )
    return found


def render(old: str, new: str, counts: Changes, first: FirstChanges, columns: int) -> str:
    """Return the changes as lines of text. old, new: IDs of the runs. columns: width of a line."""
    layout = TableLayout(columns, 12)
    return "".join(f"{line}\n" for line in _lines(old, new, counts, first, layout))


def _lines(old: str, new: str, counts: Changes, first: FirstChanges, layout: TableLayout) -> Iterator[str]:
    yield from layout.listed("From", [old])
    yield from layout.listed("To", [new])
    if not counts.classes:
        yield from layout.listed("Changes", ["none"])
    yield from layout.counts("Changes", counts.classes)
    for label, table in (("Objects", counts.verdicts), ("Findings", counts.findings)):
        yield from layout.listed(label, [f"{word}: {enumerated(kinds)}" for word, kinds in table.items()])
    yield from layout.listed("Cause", map(cause_words, counts.causes))
    for kind in ChangeKind:
        rows = first.of(kind)
        more = counts.classes.get(kind.value, 0) - len(rows)
        yield from layout.keyed(kind.value.capitalize(), map(_row, rows), more)


def _row(change: RunChange) -> tuple[str, str]:
    if change.finding is not None:
        return f"{change.finding.rule} ", "the bucket" if change.key is None else change.key
    before, after = (verdict.value if verdict else "none" for verdict in (change.before, change.after))
    return f"{before} > {after} ", change.key or ""
