"""Render the result of a run for a terminal: the verdict first, no wider than the terminal, safe to print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import asdict

from auditor.model.access import told_verdicts
from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.model.finding import FailOn, Severity
from auditor.model.rollup import RollUps
from auditor.model.summary import HashingSummary, Summary
from auditor.reports.formats.base import PLAIN, FormatOptions, RunLines
from auditor.reports.page.rows import first_changes
from auditor.reports.summary import NEVER, accepted, aside, completeness, exit_code, holes, kept_fact
from auditor.reports.table_groups import first_exposed, group_rows, undecided_rows
from auditor.reports.text_table import TableLayout, folded, labelled
from auditor.reports.verdict_sentence import Alarm, alarm, verdict_sentence
from auditor.text import counted, healed_rows, visible

COLUMNS: Final = PLAIN.columns
"""Width in columns if the output is not a terminal."""
LEAST: Final = 60
"""Smallest width in columns; a narrower terminal wraps the lines itself."""
MOST: Final = 200
"""Largest width in columns."""
_WORST: Final = 10
_FIRST: Final = 3
_COLOURS: Final = {Alarm.BAD: "31", Alarm.DOUBT: "33", Alarm.GOOD: "32"}
"""Codes of ECMA-48 for red, yellow and green."""


def render(
    summary: Summary,
    fail_on: Severity | FailOn | None = Severity.HIGH,
    columns: int = COLUMNS,
    *,
    rollups: RollUps,
    colour: bool = False,
) -> str:
    """Return the result of a run as lines of text: the verdict, the coverage, the groups, the holes and the exit code.

    fail_on: the severity from which findings make the exit code 3. columns: the terminal's width. colour: True if the
    terminal shows colours.
    """
    layout = TableLayout(max(LEAST, min(columns, MOST)))
    sections = (
        _verdict(summary, layout, colour=colour),
        folded(coverage_line(summary), layout.columns),
        _groups(rollups, layout),
        _not_looked_at(summary, rollups, layout),
        _excepted(summary, layout),
        layout.listed("Trusted in vain", summary.trust_unused),
        layout.counts("Verdicts", told_verdicts(summary.verdicts)),
        layout.counts("Findings", summary.findings),
        _hashing(summary.hashing, layout),
        layout.listed("Ledger", healed_rows(summary.healed)),
        layout.counts("Calls", asdict(summary.calls)),
        layout.listed("Kept", _kept(summary)),
        _audited(summary, layout),
        _foot(summary, fail_on, layout),
    )
    return "".join(f"{line}\n" for section in sections for line in section)


def coverage_line(summary: Summary) -> str:
    """Return how far the run looked, as a sum."""
    coverage = summary.coverage
    vanished = f" + {coverage.vanished:,} vanished" if coverage.vanished else ""
    total = f"{coverage.audited:,} audited{vanished} + {coverage.undecided:,} undecided"
    words = [f"{coverage.listed:,} listed = {total}: {completeness(summary)}"]
    if summary.rules_undecided:
        words.append(f"{counted(len(summary.rules_undecided), 'rule')} undecided")
    if coverage.delete_markers:
        words.append(counted(coverage.delete_markers, "delete marker"))
    return ", ".join(words)


def _verdict(summary: Summary, layout: TableLayout, *, colour: bool) -> Iterator[str]:
    code = _COLOURS[alarm(summary)]
    for line in folded(verdict_sentence(summary), layout.columns):
        yield f"\x1b[1;{code}m{line}\x1b[0m" if colour else line


def _groups(rollups: RollUps, layout: TableLayout) -> Iterator[str]:
    rows = list(group_rows(rollups, layout))
    yield from ["", *rows, ""] if rows else [""]
    yield from first_exposed(rollups, layout)
    steps = first_changes(rollups)
    for number, step in enumerate(steps[:_FIRST], 1):
        aside = f" ({step.aside})" if step.aside else ""
        label = "First change" if number == 1 else ""
        yield from layout.listed(label, [f"{number}. {step.change}: {step.number:,} {step.words}{aside}"])
    if len(steps) > _FIRST:
        yield from layout.listed("", [f"and {counted(len(steps) - _FIRST, 'further change')} in the report"])


def _audited(summary: Summary, layout: TableLayout) -> Iterator[str]:
    target = summary.target
    what = f"s3://{target.bucket}/{visible(target.prefix)}"
    yield from layout.listed("Audited", [f"{what} (all versions)" if target.versions else what])
    if target.start_after is not None or target.stop_at is not None:
        bounds = [("after", target.start_after), ("up to", target.stop_at)]
        yield from layout.listed("Keys", (f"{word} {visible(key)}" for word, key in bounds if key is not None))
    yield from layout.listed("Run", [f"{summary.run}, engine {summary.engine}, {summary.seconds:,} s"])


def _hashing(hashing: HashingSummary | None, layout: TableLayout) -> Iterator[str]:
    if hashing is None:
        yield from layout.listed("Hashing", ["no ledger given"])
        return
    yield from layout.counts(f"Hashing {', '.join(hashing.algorithms)}", hashing.counts)
    yield from layout.listed("", aside(hashing))


def _not_looked_at(summary: Summary, rollups: RollUps, layout: TableLayout) -> Iterator[str]:
    """Yield the facts that could not be read, and the things that this run did not look at, but not those that no run
    ever looks at (NEVER).
    """
    yield from undecided_rows(rollups, layout)
    rules = (visible(f"{item.rule}: {item.action} {item.code}") for item in summary.rules_undecided)
    yield from layout.listed("Rules undecided", rules)
    particular = [item for item in summary.not_looked_at if item not in NEVER]
    yield from layout.listed("Not looked at", [*particular, "and what no run looks at: summary.json, not_looked_at"])


def _kept(summary: Summary) -> list[str]:
    """Return phrases on the facts that were not read in this run."""
    facts = (("ACLs", summary.kept.acl), ("HEADs", summary.kept.head))
    return [f"{name}: {kept_fact(fact)}" for name, fact in facts if fact.oldest is not None]


def _excepted(summary: Summary, layout: TableLayout) -> Iterator[str]:
    """Yield the numbers that exceptions cover, and each exception that has expired or covers nothing."""
    counts = summary.excepted
    words = [f"{number:,} {verdict}" for verdict, number in counts.verdicts.items() if number]
    words += [f"{counted(number, f'{severity} finding')}" for severity, number in counts.findings.items() if number]
    yield from layout.listed("By intent", [", ".join(words)] if words else [])
    others = [one for one in summary.exceptions if one.state is not ExceptionState.ACTIVE]
    yield from layout.listed("Exceptions", map(_exception, others[:_WORST]))
    if len(others) > _WORST:
        yield from layout.listed("", [f"and {len(others) - _WORST:,} more: summary.json, exceptions"])


def _exception(one: ExceptionUse) -> str:
    """Return an exception that covers nothing, and the reason, safe to print."""
    covered = [one.rule or one.verdict or "hole", one.prefix or one.pattern]
    what = visible(f"{one.id} ({' '.join(filter(None, covered))})")
    if one.state is ExceptionState.EXPIRED:
        return f"{what} expired on {one.until}: {one.matched:,} count again"
    if one.state is ExceptionState.SHADOWED:
        return f"{what} is shadowed: earlier ones cover all of it"
    return f"{what} is unused: nothing matches it"


def _foot(summary: Summary, fail_on: Severity | FailOn | None, layout: TableLayout) -> Iterator[str]:
    if known := accepted(summary):
        yield from layout.listed("Accepted", ["; ".join(known)])
    missed = holes(summary)
    yield from layout.listed("Holes", ["; ".join(missed) or "none"])
    if any("undecided" in words or "not hashed" in words for words in missed):
        yield from layout.listed("", ["accept a known one: [[exceptions]] in auditor.toml, see docs/configuration.md"])
    code = exit_code(summary, fail_on)
    yield from layout.listed("Exit", [f"{code}: {_meaning(code, fail_on)}"])
    # Paths are never cut, because people copy them.
    yield labelled("Report", visible(f"{summary.out}/report.html"))
    yield labelled("Run folder", visible(summary.out))


def _meaning(code: int, fail_on: Severity | FailOn | None) -> str:
    if code == 4:
        return "a hole: not everything was seen"
    if fail_on is None:
        return "complete, no hole; --fail-on is never"
    wanted = fail_on if isinstance(fail_on, FailOn) else FailOn(fail_on)
    if code == 3:
        return f"{'new ' if wanted.new else ''}findings at or above {wanted.severity}"
    return f"complete, no hole, nothing{' new' if wanted.new else ''} at or above {wanted.severity}"


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the table, as a Format. No line is read."""
    how = options or PLAIN
    yield render(summary, how.fail_on, how.columns, rollups=lines.rollups(), colour=how.colour)
