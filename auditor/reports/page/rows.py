"""The rows of the page's lists, its map's counts, its trend and its first changes, from the roll-ups of the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import FirstStep, Group, RollUps, Sample, TrendNight
from auditor.model.summary import Summary
from auditor.reports import groups, phrases
from auditor.reports.first_steps import OPEN, REMOVAL
from auditor.reports.page import signs
from auditor.reports.page.data import FirstChange, Row, Tick
from auditor.reports.page.pictures import Night, PlaceCount, Places, places_of
from auditor.reports.phrases import shell_line
from auditor.reports.rollup import OTHERS
from auditor.reports.trend import day_of

TOGETHER: Final = 10
"""Largest number of keys in a row that groups share."""
_LEAST_PREFIXES: Final = 4
"""Least number of prefixes of which there is a map: fewer are said by their rows."""
_MANY: Final = 120
"""Largest number of rows that have keys beside those which they show closed: the page stays below a megabyte."""


class Rows:
    """The rows of a run's lists. summary: the run's; its `out` is the folder that the commands name.

    openings: the objects that are not private. findings: the findings.
    """

    def __init__(self, summary: Summary, rollups: RollUps) -> None:
        self._run, self._bucket = summary.out, summary.target.bucket
        found = groups.findings(rollups)
        self._of_keys: dict[str, list[Group]] = {}
        self._of_policy: list[Group] = []
        for group in found:
            rule = groups.rule_of(group)
            if rule is not None and "acl" in rule.reads:
                for one in group.samples:
                    self._of_keys.setdefault(one.key or "", []).append(group)
            elif rule is not None and "bucket.parsed_policy" in rule.reads:
                self._of_policy.append(group)
        self.openings, self.findings = self._rows(groups.openings(rollups)), self._rows(found)

    def _rows(self, found: Sequence[Group]) -> list[Row]:
        shared = groups.together(found)
        return [self._row(parts, room=len(shared) <= _MANY) for parts in shared]

    def _row(self, parts: Sequence[Group], *, room: bool) -> Row:
        group = groups.summed(parts)
        samples = [one for one in group.samples if one.key is not None]
        shown = TOGETHER if len(parts) > 1 else group.count if group.count <= groups.WHOLE else 1
        further = samples[shown:] if room else []
        return Row(
            group=group,
            ids=tuple(one.id for one in parts),
            prefixes=len({one.prefix for one in parts}),
            keys=samples[:shown],
            samples=further,
            remedies=list(self._remedies(group)),
            facts=list(_facts(group)),
            commands=list(self._commands(parts, group, hidden=group.count > len(samples[:shown]) + len(further))),
        )

    def _remedies(self, group: Group) -> Iterator[tuple[str, str]]:
        """Yield what mends the group: its rule's fix, or the fixes of the rules that found how its samples are open."""
        if group.rule is None and groups.is_intended(group):
            return
        fixes: dict[str, dict[str, None]] = {}
        otherwise = self._of_policy if group.verdict in OPEN else []
        for sample in group.samples if group.rule is None else ():
            for one in self._of_keys.get(sample.key or "", otherwise):
                fixes.setdefault(groups.mend(one), {})[one.rule or ""] = None
        for fix, rules in fixes.items():
            yield ", ".join(sorted(rules)), fix
        if not fixes:
            yield "", groups.mend(group)

    def _commands(self, parts: Sequence[Group], group: Group, *, hidden: bool) -> Iterator[tuple[str, str]]:
        """Yield whole commands with their labels. Every text that is not ours is quoted for the shell.

        hidden: True if the row does not show all keys.
        """
        first = next(iter(group.samples), None)
        if group.rule is None and first is not None:
            yield "Say why", explaining(self._bucket, first, self._run)
        if hidden and group.prefix is not None:
            lines = shell_line("auditor", "export", self._run, "--format", "jsonl")
            yield "List all keys", f"{lines} | {shell_line('jq', '-ac', f'select({_condition(parts)}) | .key')}"
        accept = [shell_line("auditor", "accept", one.id, "--run", self._run) for one in parts if _is_acceptable(one)]
        if accept and not groups.is_intended(group):
            yield "Accept it", "\n".join(accept[:TOGETHER])


def explaining(bucket: str, sample: Sample, run: str) -> str:
    """Return the whole command that explains an object of a run. run: place of the run folder."""
    version = [f"--version-id={sample.version_id}"] if sample.version_id else []  # the ID may begin with a hyphen
    return shell_line("auditor", "explain", f"s3://{bucket}/{sample.key}", *version, "--run", run)


def _is_acceptable(group: Group) -> bool:
    """False for a group that `auditor accept` always refuses."""
    return not (group.rest or group.audience == OTHERS or group.verdict in (Verdict.UNKNOWN, Verdict.DORMANT))


def _condition(parts: Sequence[Group]) -> str:
    """Return the condition of jq on the lines of `auditor export`, in ASCII. Groups that share a row lie in several
    prefixes: it names none then.
    """
    group = parts[0]
    if group.rule is not None:
        conditions = [f'.kind == "finding" and .rule == {json.dumps(group.rule)}']
    else:
        conditions = [f'.kind == "verdict" and .verdict == {json.dumps(group.verdict)}']
    if len(parts) == 1 and group.prefix and not group.rest:
        conditions.append(f"(.key | startswith({json.dumps(group.prefix)}))")
    return " and ".join(conditions)


def _facts(group: Group) -> Iterator[tuple[str, str]]:
    rule = groups.rule_of(group)
    if group.rule is not None:
        yield "Rule", f"{group.rule} {rule.name}" if rule else group.rule
        if who := groups.audience(group):
            yield "Who", who
    grantees = sorted({phrases.grantee(one.grantee) for one in group.samples if one.grantee})
    if grantees and len(group.samples) == group.count:
        yield "Grantee", ", ".join(grantees)
    if permissions := sorted({one.permission for one in group.samples if one.permission}):
        yield "Permission", ", ".join(permissions)
    if group.prefix is not None:
        yield "Bytes", phrases.size(group.bytes)
    if group.excepted:
        yield "Public by intent", f"{group.excepted:,} of {group.count:,}"
    if group.since:
        yield "Since", phrases.short_date(group.since)
    if group.count == 1 and group.samples and group.samples[0].fingerprint:
        yield "Fingerprint", group.samples[0].fingerprint


def ticks(rows: Iterable[Row]) -> Iterator[Tick]:
    """Yield the filters of the list: severities, and new findings, each with its number of findings."""
    severities, new = Counter[Severity | None](), 0
    for row in rows:
        severities[row.group.severity] += row.group.count
        new += row.group.new or 0
    for one in Severity:
        if severities[one]:
            yield Tick("sev", one.value, one.value, severities[one])
    if new:
        yield Tick("new", "1", "new", new)


def places_in(opened: Sequence[Row], rollups: RollUps) -> Places | None:
    """Return the map of the objects that are not private; None if they have few prefixes. opened: their rows."""
    row_of = {one: row.group.id for row in opened for one in row.ids}
    counts = list(_place_counts(rollups, row_of))
    return places_of(counts) if len({one.prefix for one in counts}) >= _LEAST_PREFIXES else None


def _place_counts(rollups: RollUps, row_of: dict[str, str]) -> Iterator[PlaceCount]:
    for group in groups.openings(rollups):
        sign = signs.BY_VERDICT.get(group.verdict or "")
        if sign is None:
            continue
        prefix, left, row = group.prefix or "", group.count - group.excepted, row_of[group.id]
        yield PlaceCount(prefix, sign, left, min(group.new or 0, left), row)
        yield PlaceCount(prefix, signs.INTENDED, group.excepted, 0, row)


def first_changes(rollups: RollUps) -> tuple[FirstChange, ...]:
    """Return the changes to make first, each with the number of objects that it closes beyond those before it."""
    found, before = [], 0
    for step in rollups.first:
        number, text = max(step.closes - before, 0), f"of {step.of:,} exposed objects closed"
        if step.decides:
            number, text = step.decides, f"undecided {'object' if step.decides == 1 else 'objects'} could be decided"
        found.append(FirstChange(step.change[:1].upper() + step.change[1:], _broken(step), number, text))
        before = step.closes
    return tuple(found)


def command_of(step: FirstStep, summary: Summary) -> str:
    """Return the whole command of a change to make first: its prediction, or the files that make it. The removal of a
    policy statement has two lines: the policy is saved, to be edited, and what it does is predicted.
    """
    target = summary.target
    if step.decides:
        return shell_line("auditor", "policy", target.uri, *(["--versions"] if target.versions else []))
    if step.how:
        return shell_line("auditor", "what-if", summary.out, *step.how.split())
    if step.change.startswith(REMOVAL):
        asked = shell_line("aws", "s3api", "get-bucket-policy", "--bucket", target.bucket)
        predicted = shell_line("auditor", "what-if", summary.out, "--policy", "policy.json")
        return f"{asked} --query Policy --output text > policy.json\n{predicted}"
    return shell_line("auditor", "fix-kit", summary.out, "--out", "kit")


def nights_of(nights: Iterable[TrendNight]) -> tuple[Night, ...]:
    """Return these nights for a page's curves."""
    return tuple(Night(day, _counts(one)) for one in nights if (day := day_of(one)) is not None)


def _counts(night: TrendNight) -> dict[str, int] | None:
    """Return the counts of a night as the page names them; None for a night without a complete run."""
    if night.verdicts is None:
        return None
    excepted = night.excepted or {}
    left = {verdict: number - excepted.get(verdict, 0) for verdict, number in night.verdicts.items()}
    return {**left, "undecided": night.undecided or 0, signs.INTENDED.name: sum(excepted.values())}


def _broken(step: FirstStep) -> str:
    """Return the words for those who lose access by a change; "" if nobody does."""
    parts = []
    if step.breaks:
        parts.append(f"{', '.join(phrases.audience(one) for one in step.breaks[:3])} would lose access")
    if step.intended:
        parts.append(f"closes {step.intended:,} that are public by intent, too")
    return "; ".join(parts)


def undecided_places(rollups: RollUps) -> dict[str, str]:
    """Return the prefix of the largest group of undecided objects, or its first key, by call and error code."""
    found: dict[str, str] = {}
    for group in groups.undecided(rollups):
        found.setdefault(group.audience or "", group.prefix or group.samples[0].key or "")
    return found
