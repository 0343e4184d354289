"""The facts of a group of findings or of objects, from which the page makes its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.run_lines import FindingLine
from auditor.model.summary import Summary
from auditor.reports import words
from auditor.reports.highlights import Highlights, masked
from auditor.reports.page.data import SampleView
from auditor.rules import RULES

_SAMPLES: Final = 5
OPEN: Final = (Verdict.EXPOSED, Verdict.UNKNOWN, Verdict.SHARED, Verdict.MASKED, Verdict.DORMANT)
"""The verdicts whose objects the page groups, the gravest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """One group: findings of a rule, or objects with a verdict. severity: None for objects. who: the audience in words.
    rest: True if groups of longer prefixes have other objects below `prefix`.
    """

    id: str
    rule: str | None
    verdict: Verdict | None
    severity: Severity | None
    who: str
    prefix: str | None
    count: int
    rest: bool = False
    bytes: int | None = None
    new: int | None = None
    excepted: int = 0
    since: str | None = None
    grantees: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    fingerprint: str | None = None
    samples: tuple[SampleView, ...] = ()
    masked: bool = False


def without_rollups(summary: Summary, shown: Highlights) -> Iterator[GroupFacts]:
    """Yield the groups of a run that has no roll-ups: one for each rule that found something, and one for each verdict.

    Their counts are the summary's. Their samples are of the objects and findings that `shown` has.
    """
    yield from _of_verdicts(summary, shown)
    lines: dict[str, list[FindingLine]] = {}
    for line in shown.worst.lines():
        lines.setdefault(line.rule, []).append(line)
    ranks = {severity: rank for rank, severity in enumerate(Severity)}
    known = {rule.id: rule for rule in RULES}
    found = []
    for rule, count in summary.rules.items():
        seen = lines.get(rule, [])
        severity = seen[0].severity if seen else known[rule].severity if rule in known else Severity.INFO
        found.append((ranks[severity], _of_rule(rule, severity, count, seen)))
    yield from (group for _, group in sorted(found, key=lambda item: (item[0], item[1].rule or "")))


def _of_rule(rule: str, severity: Severity, count: int, lines: list[FindingLine]) -> GroupFacts:
    whole = len(lines) == count
    verdicts = {line.verdict for line in lines}
    grantees = sorted({words.grantee(line.grantee) for line in lines if line.grantee})
    return GroupFacts(
        id=f"rule-{rule}",
        rule=rule,
        verdict=verdicts.pop() if whole and len(verdicts) == 1 else None,
        severity=severity,
        who="",
        prefix=None,
        count=count,
        grantees=tuple(grantees[:_SAMPLES]) if whole else (),
        permissions=tuple(sorted({line.permission for line in lines if line.permission})) if whole else (),
        samples=tuple(
            SampleView(line.key, line.version_id, "masked today" if masked(line) else "")
            for line in lines[:_SAMPLES]
            if line.key is not None
        ),
        masked=whole and bool(lines) and all(map(masked, lines)),
    )


def _of_verdicts(summary: Summary, shown: Highlights) -> Iterator[GroupFacts]:
    for verdict in OPEN:
        count = summary.verdicts[verdict]
        if not count:
            continue
        samples = shown.exposed if verdict is Verdict.EXPOSED else []
        yield GroupFacts(
            id=f"verdict-{verdict}",
            rule=None,
            verdict=verdict,
            severity=None,
            who=_audiences(summary, verdict),
            prefix=None,
            count=count,
            samples=tuple(SampleView(one.key, one.version_id, ", ".join(one.rules)) for one in samples[:_SAMPLES]),
        )


def _audiences(summary: Summary, verdict: Verdict) -> str:
    """Return the audience if all objects with this verdict have the same one; else ""."""
    found = summary.audiences.get(verdict, {})
    return words.audience(next(iter(found))) if len(found) == 1 and "others" not in found else ""
