"""The closing screen of an audit: the result of a run, or of several, for a person at a terminal, safe to print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from auditor.model.access import Verdict, told_verdicts
from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.model.finding import FailOn, Severity
from auditor.model.rollup import Group, RollUps, Sample
from auditor.model.summary import HashingSummary, Summary
from auditor.model.target import Target
from auditor.offline.formats.base import PLAIN, FormatOptions, RunLines
from auditor.reports import groups
from auditor.reports.page.rows import command_of, explaining, first_changes
from auditor.reports.summary import (
    NEVER,
    UNCHECKED,
    Alarm,
    accepted,
    alarm,
    aside,
    completeness,
    exit_code,
    holes,
    kept_fact,
    verdict_sentence,
)
from auditor.reports.text_table import Cell, Column, TableLayout, folded, labelled, linked, painted, text_table
from auditor.rules.keys.k01_risky_name import RISKS
from auditor.text import counted, healed_rows, shorten, visible

COLUMNS: Final = PLAIN.columns
"""Width in columns if the output is not a terminal."""
LEAST: Final = 60
"""Smallest width in columns; a narrower terminal wraps the lines itself."""
MOST: Final = 200
"""Largest width in columns."""
ROWS: Final = 12
"""Largest number of rows in the two tables of groups together."""
_KEYS: Final = 5
"""Largest number of keys in the row of a group of exposed objects."""
_LEAST_KEYS: Final = 16
_LEAST_WORDS: Final = 20
_FEW: Final = 10
_FIRST: Final = 3
_UNREAD: Final = 5
_RED, _BRIGHT, _YELLOW, _GREEN = "31", "1;31", "33", "32"
"""Codes of ECMA-48."""
_COLOURS: Final = {Alarm.BAD: _RED, Alarm.DOUBT: _YELLOW, Alarm.GOOD: _GREEN}
_MARKS: Final = {
    Verdict.EXPOSED.value: _BRIGHT,
    Verdict.UNKNOWN.value: _YELLOW,
    Verdict.SHARED.value: _YELLOW,
    Severity.CRITICAL.value: _BRIGHT,
    Severity.HIGH.value: _RED,
    Severity.MEDIUM.value: _YELLOW,
}
_INTENDED: Final = "by intent"
_STATES: Final = {0: "passed", 1: "FAILED", 3: "FINDINGS", 4: "HOLE"}
"""The words for the exit codes of targets."""
_COUNTED: Final = tuple(Column(title, right=True) for title in ("objects", "exposed", "not checked"))
_LEAST_NAME: Final = 20


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the screen, as a Format. No line is read."""
    yield render(summary, lines.rollups(), options or PLAIN)


def render(summary: Summary, rollups: RollUps, options: FormatOptions = PLAIN) -> str:
    """Return the result of a run as lines of text: the verdict, the coverage, the groups, the holes, the exit code, and
    the command to type next.
    """
    layout = TableLayout(max(LEAST, min(options.columns, MOST)))
    summary = replace(summary, out=options.folder or summary.out)
    sections = (
        _verdict(summary, layout, colour=options.colour),
        folded(coverage_line(summary), layout.columns),
        _groups(rollups, layout, colour=options.colour),
        _first_changes(rollups, layout),
        _not_looked_at(summary, rollups, layout),
        _excepted(summary, layout),
        layout.listed("Trust not used", summary.trust_unused),
        layout.counts("Verdicts", told_verdicts(summary.verdicts)),
        layout.counts("Findings", summary.findings),
        _hashing(summary.hashing, layout),
        layout.listed("Ledger", healed_rows(summary.healed)),
        _audited(summary.target, layout),
        _details(summary, layout) if options.verbose else (),
        _foot(summary, rollups, layout, options),
    )
    return "".join(f"{line}\n" for section in sections for line in section)


def coverage_line(summary: Summary) -> str:
    """Return how far the run looked, as a sum."""
    coverage = summary.coverage
    vanished = f" + {coverage.vanished:,} vanished" if coverage.vanished else ""
    total = f"{coverage.audited:,} audited{vanished} + {coverage.undecided:,} that {UNCHECKED}"
    words = [f"{counted(coverage.listed, 'object')} listed = {total}: {completeness(summary)}"]
    if summary.rules_undecided:
        words.append(f"{counted(len(summary.rules_undecided), 'rule')} {UNCHECKED}")
    if coverage.delete_markers:
        words.append(counted(coverage.delete_markers, "delete marker"))
    return ", ".join(words)


def _verdict(summary: Summary, layout: TableLayout, *, colour: bool) -> Iterator[str]:
    code = f"1;{_COLOURS[alarm(summary)]}" if colour else ""
    for line in folded(verdict_sentence(summary), layout.columns):
        yield painted(line, code)


def _groups(rollups: RollUps, layout: TableLayout, *, colour: bool) -> Iterator[str]:
    """Yield two tables, of the objects by their verdict and of the findings: a row for each group, ROWS at most."""
    opened, found = _rows(groups.openings(rollups)), _rows(groups.findings(rollups))
    first, then = groups.first_of(opened, found, ROWS)
    for titles, shown, rest in (
        (("verdict", "objects", "object"), first, opened[len(first) :]),
        (("severity", "finding", "finding"), then, found[len(then) :]),
    ):
        if shown:
            yield ""
            yield from _table(titles[:2], shown, layout, colour=colour)
        if number := sum(group.count for group in rest):
            yield f"and {counted(number, f'further {titles[2]}')} in the report"
    yield ""


def _rows(found: Sequence[Group]) -> list[Group]:
    return [groups.summed(parts) for parts in groups.together(found)]


def _table(titles: Sequence[str], shown: Sequence[Group], layout: TableLayout, *, colour: bool) -> Iterator[str]:
    columns = {
        titles[0]: (Column(titles[0], colours=_MARKS if colour else {}), _mark),
        "rule": (Column("rule"), lambda group: visible(group.rule or "")),
        "new": (Column("new", right=True), lambda group: f"{group.new:,}" if group.new else ""),
        titles[1]: (Column(titles[1], least=_LEAST_WORDS, folds=True), _sentence),
        "keys": (Column("keys", least=_LEAST_KEYS), _keys),
    }
    rows = [tuple(cell(group) for _, cell in columns.values()) for group in shown]
    return text_table([column for column, _ in columns.values()], rows, layout.columns)


def _mark(group: Group) -> str:
    if group.severity is not None:
        return group.severity.value
    return _INTENDED if groups.is_intended(group) else (group.verdict or Verdict.UNKNOWN).value


def _sentence(group: Group) -> str:
    covered = f", {group.excepted:,} {_INTENDED}" if group.excepted and _mark(group) != _INTENDED else ""
    return visible(f"{groups.sentence(group).text}{covered}")


def _keys(group: Group) -> Cell:
    """Return some keys of a group, and how many more there are: of exposed objects a key a line, _KEYS at most."""
    if group.prefix is None:
        return "the bucket"
    keys = [visible(one.key or "") for one in plain_first(group.samples)]
    shown = tuple(keys[: _KEYS if group.verdict is Verdict.EXPOSED else 1])
    more = group.count - len(shown)
    if group.verdict is Verdict.EXPOSED:
        return (*shown, f"and {more:,} more") if more else shown
    return f"{shown[0]} + {more:,}" if shown and more else "".join(shown)


def plain_first(samples: Iterable[Sample]) -> list[Sample]:
    """Return the samples in the order of their keys, but those last whose key rule K01 calls risky, such as `-rf *`."""
    return sorted(samples, key=lambda one: (any(risk.search(one.key or "") for risk, _ in RISKS), one.key or ""))


def _first_changes(rollups: RollUps, layout: TableLayout) -> Iterator[str]:
    steps = first_changes(rollups)
    for number, step in enumerate(steps[:_FIRST], 1):
        aside = f" ({step.aside})" if step.aside else ""
        label = "First change" if number == 1 else ""
        yield from layout.listed(label, [f"{number}. {step.change}: {step.number:,} {step.words}{aside}"])
    if len(steps) > _FIRST:
        yield from layout.listed("", [f"and {counted(len(steps) - _FIRST, 'further change')} in the report"])


def _not_looked_at(summary: Summary, rollups: RollUps, layout: TableLayout) -> Iterator[str]:
    """Yield the facts that could not be read, and the things that this run did not look at, but not those that no run
    ever looks at (NEVER).
    """
    unread = _rows(groups.undecided(rollups))
    lines = [f"{visible(groups.sentence(group).text)}: {_keys(group)}" for group in unread[:_UNREAD]]
    if rest := sum(group.count for group in unread[_UNREAD:]):
        lines.append(f"and {counted(rest, 'further object')} in the report")
    yield from layout.listed("Not checked", (shorten(line, 2 * layout.room) for line in lines))
    rules = (visible(f"{item.rule}: {item.action} {item.code}") for item in summary.rules_undecided)
    yield from layout.listed("Rules undecided", rules)
    particular = [item for item in summary.not_looked_at if item not in NEVER]
    yield from layout.listed(
        "Not looked at", [*particular, "and the things that no run looks at: not_looked_at in summary.json"]
    )


def _excepted(summary: Summary, layout: TableLayout) -> Iterator[str]:
    """Yield the numbers that exceptions cover, and each exception that has expired or covers nothing."""
    counts = summary.excepted
    words = [f"{number:,} {verdict}" for verdict, number in counts.verdicts.items() if number]
    words += [f"{counted(number, f'{severity} finding')}" for severity, number in counts.findings.items() if number]
    yield from layout.listed("By intent", [", ".join(words)] if words else [])
    others = [one for one in summary.exceptions if one.state is not ExceptionState.ACTIVE]
    yield from layout.listed("Exceptions", map(_exception, others[:_FEW]))
    if len(others) > _FEW:
        yield from layout.listed("", [f"and {len(others) - _FEW:,} more: summary.json, exceptions"])


def _exception(one: ExceptionUse) -> str:
    """Return an exception that covers nothing, and the reason, safe to print."""
    covered = [one.rule or one.verdict or "hole", one.prefix or one.pattern]
    what = visible(f"{one.id} ({' '.join(filter(None, covered))})")
    if one.state is ExceptionState.EXPIRED:
        return f"{what} expired on {one.until}: {one.matched:,} count again"
    if one.state is ExceptionState.SHADOWED:
        return f"{what} is shadowed: earlier ones cover all of it"
    return f"{what} is unused: nothing matches it"


def _hashing(hashing: HashingSummary | None, layout: TableLayout) -> Iterator[str]:
    if hashing is not None:
        yield from layout.counts(f"Hashing {', '.join(hashing.algorithms)}", hashing.counts)
        yield from layout.listed("", aside(hashing))


def _audited(target: Target, layout: TableLayout) -> Iterator[str]:
    what = f"s3://{target.bucket}/{visible(target.prefix)}"
    yield from layout.listed("Audited", [f"{what} (all versions)" if target.versions else what])
    bounds = [("after", target.start_after), ("up to", target.stop_at)]
    yield from layout.listed("Keys", (f"{word} {visible(key)}" for word, key in bounds if key is not None))


def _details(summary: Summary, layout: TableLayout) -> Iterator[str]:
    """Yield the facts that serve a developer, for -v."""
    if summary.hashing is None:
        yield from layout.listed("Hashing", ["no ledger given"])
    yield from layout.counts("Calls", asdict(summary.calls))
    facts = (("ACLs", summary.kept.acl), ("HEADs", summary.kept.head))
    yield from layout.listed("Kept", [f"{name}: {kept_fact(fact)}" for name, fact in facts if fact.oldest is not None])
    yield from layout.listed("Run", [f"{summary.run}, engine {summary.engine}, {summary.seconds:,} s"])
    yield labelled("Run folder", visible(summary.out))


def _foot(summary: Summary, rollups: RollUps, layout: TableLayout, options: FormatOptions) -> Iterator[str]:
    if known := accepted(summary, UNCHECKED):
        yield from layout.listed("Accepted", ["; ".join(known)])
    missed = "; ".join(holes(summary, UNCHECKED))
    if missed or options.verbose:
        yield from layout.listed("Holes", [missed or "none"])
    if UNCHECKED in missed or "not hashed" in missed:
        yield from layout.listed("", ["accept a known one: [[exceptions]] in auditor.toml, see docs/configuration.md"])
    code = exit_code(summary, options.fail_on)
    yield from layout.listed("Exit", [f"{code}: {_meaning(code, options.fail_on)}"])
    # People copy the path and the command: they are never cut.
    report = f"{summary.out}/report.html"
    yield labelled("Report", linked(visible(report), report if options.links else ""))
    for number, line in enumerate(next_command(summary, rollups).splitlines()):
        yield labelled("" if number else "Next", line)


def _meaning(code: int, fail_on: Severity | FailOn | None) -> str:
    if code == 4:
        return "a hole: not everything was seen"
    if fail_on is None:
        return "complete, no hole; --fail-on is never"
    wanted = fail_on if isinstance(fail_on, FailOn) else FailOn(fail_on)
    if code == 3:
        return f"{'new ' if wanted.new else ''}findings at or above {wanted.severity}"
    return f"complete, no hole, nothing{' new' if wanted.new else ''} at or above {wanted.severity}"


def next_command(summary: Summary, rollups: RollUps) -> str:
    """Return the whole command, quoted for a shell, that helps most with the result; "" if nothing is to be done, and
    for a run that is to be resumed.

    It is the first change's own, which predicts it or makes its files; else it explains an object that others reach,
    or a rule.
    """
    if summary.resume is not None:
        return ""
    for step in rollups.first:
        return command_of(step, summary)
    for group in groups.openings(rollups):
        for one in () if groups.is_intended(group) else plain_first(group.samples):
            return explaining(summary.target.bucket, one, summary.out)
    for group in groups.findings(rollups):
        if groups.rule_of(group) and not groups.is_intended(group):
            return f"auditor rules {group.rule}"
    return ""


class TargetResult(Struct, frozen=True):
    """The end of one target. summary: None if the target failed. code: its exit code."""

    target: Target
    summary: Summary | None
    code: int


def closing_table(results: Sequence[TargetResult], columns: int) -> str:
    """Return the end of an audit of several targets: a line for each of them, and their sums. columns: the terminal's
    width.
    """
    found = [_counts(one.summary) for one in results]
    rows = [
        (_STATES[one.code], *([f"{number:,}" for number in counts] or "---"), visible(one.target.uri))
        for one, counts in zip(results, found, strict=True)
    ]
    listed, exposed, undecided = map(sum, zip((0, 0, 0), *filter(None, found), strict=True))
    states = Counter(_STATES[one.code] for one in results)
    words = ", ".join(f"{states[state]:,} {state}" for state in _STATES.values() if states[state])
    lines = [
        *text_table([Column(), *_COUNTED, Column("target", least=_LEAST_NAME)], rows, columns),
        f"{counted(len(results), 'target')}: {words}; {counted(listed, 'object')}, {exposed:,} exposed,"
        f" {undecided:,} that {UNCHECKED}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _counts(summary: Summary | None) -> tuple[int, ...]:
    """Return the numbers of objects that were listed, are exposed, and could not be checked; () for a failed target."""
    if summary is None:
        return ()
    return summary.coverage.listed, summary.verdicts[Verdict.EXPOSED], summary.coverage.undecided
