"""Compare two runs of one target: read the lines of both run folders side by side, and yield the changes key by key, in
bounded memory. Print them as a table that names the first of each kind, or as JSON lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, Protocol

from auditor.audit.compare_with_last import RunChange, RunComparison, RunPair
from auditor.errors import UsageError
from auditor.model.json_codec import plain
from auditor.model.run_lines import FindingLine, PastObject
from auditor.model.summary import ChangeKind, Changes, Summary
from auditor.reports.changes import cause_words, causes_between, changes_of, judged_rules, worsening
from auditor.reports.text_table import TableLayout
from auditor.runs.run_files import RunPlan
from auditor.runs.tally import Tally
from auditor.text import enumerated, visible

SHOWN: Final = 5
"""Number of changes of each kind that the table names."""
_OF_FINDING: Final = ("rule", "severity", "grantee", "permission", "fingerprint", "since")


class ComparedRun(Protocol):
    """The interface of a run that diff() compares. results() yields its objects in key order."""

    @property
    def run_id(self) -> str: ...
    @property
    def summary(self) -> Summary | None: ...
    @property
    def plan(self) -> RunPlan | None: ...
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
        first, second = old.plan, new.plan
        if first and second and first.target != second.target:
            raise UsageError(
                f"the runs have different targets or key ranges, {visible(first.target.uri)} and"
                f" {visible(second.target.uri)}: compare two runs of one target"
            )
        self._pair = RunPair(
            old_rules=_rules(old),
            new_rules=_rules(new) or (),
            worse=worsening(first),
            causes=causes_between(first, second) if first and second else (),
            old_end=_end(old),
            new_end=_end(new),
        )
        self._tally = Tally()

    @property
    def counts(self) -> Changes:
        """The changes so far, in the form of a summary."""
        return changes_of(self._tally.changes, self._old.run_id, None, self._pair.causes)

    def changes(self) -> Iterator[RunChange]:
        """Yield the changes in key order, those of findings on the bucket first. Call this once."""
        found: list[RunChange] = []
        for _ in self._compared(found):
            yield from found
            found.clear()

    def _compared(self, found: list[RunChange]) -> Iterator[None]:
        """Compare the runs, and pause after each object, and each time when objects of the old run are read."""
        walk, judged = RunComparison(iter(self._old.results()), self._pair, self._tally, found), self._pair.new_rules
        lines = list(self._new.bucket_findings())
        walk.bucket(self._old.bucket_findings(), lines, [line.exception for line in lines])
        yield
        for new in self._new.results():
            while walk.needs(new.key):
                walk.leave_behind(new.key)
                yield
                walk.load()
            old = walk.take(new.key, new.version_id)
            if not new.seen.plain or old is None or not old.seen.plain:
                walk.compare(old, new, new.seen, [line.exception for line in new.findings], judged)
            yield
        while walk.drain():
            yield
        yield


def _rules(run: ComparedRun) -> Collection[str] | None:
    """Return the IDs of the rules that the run judged; None if it does not say. A run that was killed before its first
    part has judged none.
    """
    file, summary = run.plan, run.summary
    if summary is None and run.last_key is None:
        return ()
    return None if file is None else judged_rules(file, summary.rules_undecided if summary else ())


def _end(run: ComparedRun) -> str | None:
    """Return the last key of a run that is not complete; None for a complete run."""
    return None if run.summary is not None and run.summary.complete else run.last_key or ""


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
