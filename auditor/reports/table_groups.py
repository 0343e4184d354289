"""Lay out the groups of a run's roll-ups as rows of a table, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from auditor.model.access import Verdict
from auditor.model.rollup import Group, RollUps
from auditor.reports import groups as words
from auditor.reports.text_table import TableLayout
from auditor.text import counted, shorten, visible, width

ROWS: Final = 12
"""Largest number of rows in the two tables together."""
_UNREAD: Final = 5
_KEYS: Final = 5
_KIND: Final = 40
_GAP: Final = "  "


class _Row(Struct, frozen=True):
    """The cells of one group, safe to print. new: None if there is no run to compare with."""

    kind: str
    count: int
    new: int | None
    audience: str
    keys: str


def group_rows(rollups: RollUps, layout: TableLayout) -> Iterator[str]:
    """Yield two tables, of the objects by their verdict and of the findings: a row for each group, ROWS at most.

    A rule has its name beside its ID if this cuts no other cell.
    """
    openings, findings = words.openings(rollups), words.findings(rollups)
    first, then = words.first_of(openings, findings, ROWS)
    grid = _Grid([_row(group, named=True) for group in (*first, *then)], layout.columns)
    if not grid.whole:
        grid = _Grid([_row(group, named=False) for group in (*first, *then)], layout.columns)
    yield from grid.table("verdict", "objects", len(first), openings[len(first) :], at=0)
    if first and then:
        yield ""
    yield from grid.table("finding", "number", len(then), findings[len(then) :], at=len(first))


def first_exposed(rollups: RollUps, layout: TableLayout) -> Iterator[str]:
    """Yield some exposed keys of the groups whose row names no key."""
    exposed = [
        group for group in words.openings(rollups) if group.verdict is Verdict.EXPOSED and not words.is_intended(group)
    ]
    keys = [sample.key for group in exposed if group.count > 1 for sample in group.samples if sample.key is not None]
    if keys:
        left = sum(group.count for group in exposed if group.count > 1) - len(keys[:_KEYS])
        yield from layout.keyed("First exposed", [("", key) for key in keys[:_KEYS]], left)


def undecided_rows(rollups: RollUps, layout: TableLayout) -> Iterator[str]:
    """Yield a line for each group of objects with a fact that could not be read, those with most objects first."""
    groups = words.undecided(rollups)
    lines = [
        f"{counted(group.count, 'object')}: {visible(group.audience or 'a fact')}, {keys_of(group)}"
        for group in groups[:_UNREAD]
    ]
    yield from layout.listed("Undecided", lines)
    if more := _more(groups[_UNREAD:], "object"):
        yield from layout.listed("", [more])


def keys_of(group: Group) -> str:
    """Return the keys of a group in words, safe to print: its only key, or the prefix of all."""
    if group.prefix is None:
        return "the bucket"
    if group.count == 1 and group.samples and group.samples[0].key is not None:
        return visible(group.samples[0].key)
    if not group.prefix:
        return "other keys" if group.rest else "all keys"
    return f"{'the rest of ' if group.rest else ''}{visible(group.prefix)}"


def _row(group: Group, *, named: bool) -> _Row:
    by_intent = words.is_intended(group)
    kind = "by intent" if by_intent else (group.verdict or Verdict.UNKNOWN).value
    if group.severity is not None:
        rule = words.rule_of(group)
        name = f" {rule.name}" if rule and named else ""
        kind = f"{group.severity.value:8}  {visible(group.rule or '')}{name}"
    audience = visible(words.audience(group))
    if group.excepted and not (by_intent and group.severity is None):
        audience = f"{audience} ({group.excepted:,} by intent)".lstrip()
    return _Row(kind, group.count, group.new, audience, keys_of(group))


def _more(groups: Sequence[Group], noun: str) -> str:
    number = sum(group.count for group in groups)
    return f"and {counted(len(groups), 'more group')} of {counted(number, noun)}" if groups else ""


class _Grid:
    """Lays out rows in columns that all tables share: the kind, the number, how many are new, the audience and the
    keys. The last two share the room that is left, and a long cell is cut.
    """

    def __init__(self, rows: Sequence[_Row], columns: int) -> None:
        self._rows = rows
        self._kind = min(_KIND, max([len("verdict"), *(width(row.kind) for row in rows)]))
        self._count = max([len("objects"), *(len(f"{row.count:,}") for row in rows)])
        self._new = max([len("new"), *(len(f"{row.new:,}") for row in rows if row.new is not None)])
        self._compared = any(row.new is not None for row in rows)
        room = columns - self._kind - self._count - len(_GAP) * 3
        room -= self._new + len(_GAP) if self._compared else 0
        asked = max([len("audience"), *(width(row.audience) for row in rows)])
        keys = max([len("keys"), *(width(row.keys) for row in rows)])
        self._audience = min(asked, max(room // 2, room - keys))
        self._keys = room - self._audience
        self.whole = asked + keys <= room
        """True if no cell of the audience or of the keys is cut."""

    def table(self, kind: str, counts: str, number: int, rest: Sequence[Group], *, at: int) -> Iterator[str]:
        """Yield the header, `number` rows from the row `at` on, and how many groups follow."""
        if not number:
            return
        yield self._line(kind, counts, "new", "audience", "keys")
        for row in self._rows[at : at + number]:
            new = "" if row.new is None else f"{row.new:,}"
            yield self._line(row.kind, f"{row.count:,}", new, row.audience, row.keys)
        if more := _more(rest, "object" if counts == "objects" else "finding"):
            yield more

    def _line(self, kind: str, count: str, new: str, audience: str, keys: str) -> str:
        cells = [f"{shorten(kind, self._kind):{self._kind}}", f"{count:>{self._count}}"]
        if self._compared:
            cells.append(f"{new:>{self._new}}")
        shown = shorten(audience, self._audience)
        cells += [shown + " " * (self._audience - width(shown)), shorten(keys, self._keys)]
        return _GAP.join(cells).rstrip()
