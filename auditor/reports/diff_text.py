"""Print the changes between two runs: as a table that names the first of each kind, or as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from auditor.model.json_codec import plain
from auditor.model.summary import ChangeKind, Changes
from auditor.reports.diff import RunChange
from auditor.reports.text_table import TableLayout

SHOWN: Final = 5
"""Number of changes of each kind that the table names."""


_OF_FINDING: Final = ("rule", "severity", "grantee", "permission", "fingerprint", "since")


class FirstChanges:
    """Keeps the first changes of each kind, of verdicts before those of findings."""

    def __init__(self, limit: int = SHOWN) -> None:
        self._limit = limit
        self._first: dict[tuple[ChangeKind, bool], list[RunChange]] = {}

    def add(self, change: RunChange) -> None:
        kept = self._first.setdefault((change.kind, change.finding is None), [])
        if len(kept) < self._limit:
            kept.append(change)

    def of(self, kind: ChangeKind) -> list[RunChange]:
        return [*self._first.get((kind, True), []), *self._first.get((kind, False), [])][: self._limit]


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
        yield from layout.listed(label, [f"{word}: {numbers(kinds)}" for word, kinds in table.items()])
    yield from layout.listed("Cause", [f"{cause.change}: moved {cause.objects:,} objects" for cause in counts.causes])
    for kind in ChangeKind:
        rows = first.of(kind)
        more = counts.classes.get(kind.value, 0) - len(rows)
        yield from layout.keyed(kind.value.capitalize(), map(_row, rows), more)


def numbers(counts: Mapping[str, int]) -> str:
    """Return counts as text: `1 new, 1,234 gone`. Their names are words of ours."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


def _row(change: RunChange) -> tuple[str, str]:
    if change.finding is not None:
        return f"{change.finding.rule} ", "the bucket" if change.key is None else change.key
    before, after = (verdict.value if verdict else "none" for verdict in (change.before, change.after))
    return f"{before} > {after} ", change.key or ""
