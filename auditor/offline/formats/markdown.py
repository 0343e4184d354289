"""Markdown for a comment on a pull request: coverage, counts, findings by rule. Untrusted text cannot be markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from auditor.model.access import told_verdicts
from auditor.model.rollup import Group
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.offline.formats.base import FormatOptions, RunLines, coverage_sentence, first_keys, sums_of
from auditor.reports import groups
from auditor.reports.summary import failed_of, has_hole, verdict_sentence
from auditor.text import counted, shorten, visible

LONGEST: Final = 65_536
"""Largest number of characters of a comment on GitHub."""
_ROOM: Final = LONGEST - 1_000
"""Characters for the tables; the rest is for the sentence on the rows that are left out."""
_WIDEST: Final = 120
_MARKUP: Final = re.compile(r"[^\w ,;=/-]|_")


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the comment: at most 65,536 characters."""
    length = left_out = 0
    for line in _lines(summary, lines):
        if length + len(line) > _ROOM:
            left_out += 1
            continue
        length += len(line)
        yield line
    if left_out:
        yield f"\n{counted(left_out, 'further line')} would not fit: `summary.json` of the run has all counts.\n"


def failed_comment(target: Target, sentence: str) -> str:
    """Return the comment on a target that could not be audited. sentence: the reason."""
    name = inert(f"s3://{target.bucket}/{target.prefix}")
    return f"## S3 audit of {name}\n\n**It failed, so nothing is known of it.** {inert(sentence, LONGEST // 20)}\n\n"


def inert(text: str, columns: int = _WIDEST) -> str:
    """Return untrusted text as text of Markdown that is no link, mention, tag or table cell's end: each character that
    could be markup becomes a numeric entity. The text is cut to 120 columns, or as many as `columns`.
    """
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", shorten(visible(text), columns))


def _lines(summary: Summary, lines: RunLines) -> Iterator[str]:
    target, rollups = summary.target, lines.rollups()
    yield f"## S3 audit of {inert(f's3://{target.bucket}/{target.prefix}')}\n\n"
    yield f"**{verdict_sentence(summary)}**\n\n{coverage_sentence(summary)}.\n"
    yield from _table(
        "Verdict", "Objects", ((name, f"{count:,}") for name, count in told_verdicts(summary.verdicts).items())
    )
    yield from _table("Findings", "Number", ((name, f"{count:,}") for name, count in summary.findings.items()))
    yield "\n### Could not be looked at\n"
    if not has_hole(summary):
        yield "\nNothing: everything that the run asked for was read.\n"
    yield from _groups(("Call", "Error"), groups.undecided(rollups))
    rules = [(rule.rule, f"{inert(rule.action)} {inert(rule.code)}") for rule in summary.rules_undecided]
    if rules:
        yield from _table("Rule", "Lacks", iter(rules))
    if failed := failed_of(summary):
        yield from _table("Not hashed", "Objects", ((code, f"{count:,}") for code, count in failed.items()))
    yield "\n### Findings by rule\n"
    yield from _groups(("Rule", "Severity"), groups.findings(rollups))
    yield f"\nRun {inert(summary.run)}.\n"


def _table(first: str, second: str, rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield f"\n| {first} | {second} |\n|---|---:|\n"
    for name, value in rows:
        yield f"| {inert(name)} | {value} |\n"


def _groups(names: tuple[str, str], found: Iterable[Group]) -> Iterator[str]:
    rows = sums_of(found)
    if not rows:
        return
    yield f"\n| {names[0]} | {names[1]} | Number | Since | First keys |\n|---|---|---:|---|---|\n"
    for (first, second), count in rows:
        keys = ", ".join(map(inert, first_keys(count.samples)))
        yield f"| {' | '.join((inert(first), inert(second), f'{count.count:,}', inert(count.since or ''), keys))} |\n"
