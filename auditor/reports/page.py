"""Render a run as one HTML page. The page has no script and loads nothing; all text from the bucket is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from html import escape
from typing import Final

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.finding import RuleUndecided, Severity
from auditor.model.run_lines import FindingLine, UndecidedLine
from auditor.model.summary import Coverage, HashingSummary, Summary
from auditor.model.version import VERSION
from auditor.reports.highlights import ExposedObject, Highlights, masked
from auditor.reports.page_markup import STYLE, code, grantee, named, numbers, table, text
from auditor.reports.summary import accepted, alarming, aside, holes
from auditor.rules import RULES
from auditor.rules.docs import sections
from auditor.runs.paths import parse_run_id
from auditor.text import counted, harmless

_RULES: Final = {rule.id: rule for rule in RULES}
_MASKED: Final = ' <span class="masked">(masked today)</span>'


def render(summary: Summary, shown: Highlights | None = None) -> str:
    """Return the whole HTML page. shown: the objects and findings to name; None: only the totals."""
    shown = shown or Highlights()
    pieces = (
        _opening(summary),
        _headline(summary),
        _exposed(summary.verdicts[Verdict.EXPOSED], shown.exposed),
        _findings(summary, shown),
        _fired(summary.rules),
        numbers("Verdicts", summary.verdicts, frozenset({"exposed"})),
        _audiences(summary),
        _coverage(summary.coverage),
        _undecided(summary, shown.undecided),
        _rules_undecided(summary.rules_undecided),
        _hashing(summary.hashing),
        numbers("Calls", asdict(summary.calls)),
        _not_looked_at(summary.not_looked_at),
        ["</body></html>\n"],
    )
    return "\n".join(line for piece in pieces for line in piece)


def _opening(summary: Summary) -> Iterator[str]:
    target = summary.target
    place = f"s3://{target.bucket}/{target.prefix}"
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Audit of {text(place)}</title><style>{STYLE}</style></head><body>"
    yield f"<h1>Audit of {code(place)}{', all versions' if target.versions else ''}</h1>"


def _headline(summary: Summary) -> Iterator[str]:
    state = "Complete." if summary.complete else "Not complete."
    missed = holes(summary)
    hole = f"Holes: {text('; '.join(missed))}." if missed else "No holes."
    bad = ' class="state bad"' if missed or alarming(summary) else ' class="state"'
    yield f"<p{bad}><strong>{state} {hole}</strong> {_found(summary)}"
    yield f"{counted(summary.coverage.listed, 'object')} listed.</p>"
    if known := accepted(summary):
        yield f"<p>Holes accepted in the configuration: {text('; '.join(known))}.</p>"
    yield f"<p>{_when(summary.run)}run {code(summary.run)}, {text(summary.seconds)} s,"
    yield f"engine {text(summary.engine)}, auditor {text(VERSION)}.</p>"
    target = summary.target
    for words, key in (("after", target.start_after), ("up to", target.stop_at)):
        if key is not None:
            yield f"<p>Only keys {words} {code(key)}.</p>"


def _found(summary: Summary) -> str:
    """Return the counts in words, as HTML: `9 exposed, 27 findings: 5 critical, 9 high.`"""
    verdicts, found = summary.verdicts, summary.findings
    exposed = f"{verdicts[Verdict.EXPOSED]:,} exposed"
    parts = [f'<strong class="exposed">{exposed}</strong>' if verdicts[Verdict.EXPOSED] else exposed]
    if unknown := verdicts[Verdict.UNKNOWN]:
        parts.append(f"{unknown:,} unknown")
    parts.append(counted(sum(found.values()), "finding"))
    each = ", ".join(f'<span class="{name}">{number:,} {name}</span>' for name, number in found.items() if number)
    return f"{', '.join(parts)}{': ' if each else ''}{each}."


def _when(run: str) -> str:
    """Return in words when the run began, read from the run's ID; "" if the text is not a run ID."""
    try:
        began = parse_run_id(run)
    except UsageError:
        return ""
    return f"Begun on {began.day} {began:%B %Y at %H:%M} UTC: "


def _exposed(total: int, lines: list[ExposedObject]) -> Iterator[str]:
    if not total:
        return
    yield f'<h2>Exposed objects: <span class="exposed">{total:,}</span></h2>'
    yield "<p>Anyone, or any AWS account, can read these or their ACL, or change their ACL, today.</p>"
    access = [[rule for rule in line.rules if rule.startswith("O")] for line in lines]
    keys = [code(line.key) + _version(line.version_id) for line in lines]
    rows = list(zip(keys, map(_rule_names, access), strict=True))
    if rows:
        yield from table(("Key", "Findings on access"), rows)
    if not all(access):
        yield "<p>Without one, the bucket policy opens the object, or a grant whose rule was not selected.</p>"
    if total > len(rows):
        yield f"<p>And {total - len(rows):,} more in the run folder, below <code>objects/</code>.</p>"


def _rule_names(ids: Iterable[str]) -> str:
    return ", ".join(_rule(rule) for rule in ids) or "–"


def _rule(rule_id: str) -> str:
    known = _RULES.get(rule_id)
    return named(rule_id, known.title if known else None)


def _findings(summary: Summary, shown: Highlights) -> Iterator[str]:
    loud = frozenset({Severity.CRITICAL.value, Severity.HIGH.value})
    yield from numbers("Findings", summary.findings, loud)
    rows = [_finding(line) for line in shown.worst.lines()]
    if rows:
        yield from table(("Severity", "Rule", "Verdict", "Key", "What", "Grantee", "Permission"), rows)
    if more := shown.worst.more:
        yield f"<p>And {more:,} more in the run folder, below <code>findings/</code>.</p>"


def _finding(line: FindingLine) -> tuple[str, ...]:
    verdict = line.verdict
    return (
        f'<span class="{line.severity}">{line.severity}</span>',
        _rule(line.rule),
        f'<span class="exposed">{text(verdict)}</span>' if verdict is Verdict.EXPOSED else text(verdict),
        "the bucket" if line.key is None else code(line.key) + _version(line.version_id),
        text(line.message) + (_MASKED if masked(line) else ""),
        grantee(line.grantee),
        text(line.permission),
    )


def _version(version_id: str | None) -> str:
    return "" if version_id is None else f" version {code(version_id)}"


def _fired(rules: Mapping[str, int]) -> Iterator[str]:
    """Yield a section on the rules that have findings, with their fixes. rules: number of findings by rule ID."""
    fired = [rule for rule in RULES if rule.id in rules]
    if not fired:
        return
    yield "<h2>The rules that found something</h2><dl>"
    for rule in fired:
        yield f"<dt>{text(rule.id)} {text(rule.title)} ({counted(rules[rule.id], 'finding')})</dt>"
        yield f"<dd>Fix: {text(sections(rule).get('Fix', ''))}</dd>"
    yield "</dl>"


def _audiences(summary: Summary) -> Iterator[str]:
    rows = [
        (text(verdict), code(audience), f"{number:,}")
        for verdict, counts in summary.audiences.items()
        for audience, number in counts.items()
    ]
    if rows:
        yield "<h2>Audiences</h2><p>An object counts for each audience that gets in.</p>"
        yield from table(("Verdict", "Audience", "Objects"), rows, right=1)
    if summary.trust_unused:
        entries = ", ".join(map(code, summary.trust_unused))
        yield f"<p>Entries of <code>trusted</code> that trusted nothing: {entries}.</p>"


def _coverage(coverage: Coverage) -> Iterator[str]:
    counts = asdict(coverage)
    yield from numbers("Coverage", counts)
    if coverage.listed:
        yield '<div class="bar" role="presentation">'
        for name in ("audited", "undecided", "vanished"):
            if counts[name]:
                yield f'<span class="{name}" style="flex:{counts[name]}"></span>'
        yield "</div>"


def _undecided(summary: Summary, undecided: Iterable[UndecidedLine]) -> Iterator[str]:
    total = summary.coverage.undecided
    if not total:
        return
    yield "<h2>Undecided objects</h2>"
    reasons = ((text(item.action), text(item.code), f"{item.count:,}") for item in summary.unread)
    yield from table(("Could not be read", "Code", "Objects"), reasons, right=1)
    rows = [
        (
            code(line.key) + _version(line.version_id),
            "; ".join(f"{text(fact.action)} {text(fact.code)}" for fact in line.unread),
            _rule_names(line.rules),
        )
        for line in undecided
    ]
    if rows:
        yield from table(("Key", "Unread", "Rules without an answer"), rows)
    if total > len(rows):
        yield f"<p>And {total - len(rows):,} more in the run folder, below <code>undecided/</code>.</p>"


def _rules_undecided(rules: Iterable[RuleUndecided]) -> Iterator[str]:
    rows = [(_rule(item.rule), text(item.action), text(item.code)) for item in rules]
    if rows:
        yield "<h2>Undecided rules</h2>"
        yield from table(("Rule", "Could not be read", "Code"), rows)


def _hashing(hashing: HashingSummary | None) -> Iterator[str]:
    if hashing is None:
        return
    yield from numbers(f"Hashing ({', '.join(hashing.algorithms)})", hashing.counts)
    for words in aside(hashing):
        yield f"<p>{text(words[0].upper() + words[1:])}.</p>"


def _not_looked_at(words: Iterable[str]) -> Iterator[str]:
    yield "<h2>Not looked at</h2><p>“Private” does not speak of:</p><ul>"
    for item in words:
        yield f"<li>{escape(harmless(item), quote=True)}</li>"
    yield "</ul>"
