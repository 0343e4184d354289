"""The rows of the page's lists, its map's counts, its trend and its first changes, from the roll-ups of the run."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final

from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import FirstStep, Group, RollUps, TrendNight
from auditor.model.summary import Summary
from auditor.reports import groups, phrases
from auditor.reports.first_steps import OPEN
from auditor.reports.page import signs
from auditor.reports.page.data import FirstChange, Row, Tick
from auditor.reports.page.pictures import Night, PlaceCount, Places, places_of

WHOLE: Final = 3
"""Largest number of objects of a group whose keys are all in its row; the small groups of a subject share a row."""
TOGETHER: Final = 10
"""Largest number of keys in a row that groups share."""
_LEAST_PREFIXES: Final = 4
"""Least number of prefixes of which there is a map: fewer are said by their rows."""
_SEVERITIES: Final = list(Severity)
_VERDICTS: Final = list(Verdict)
_MANY: Final = 120
"""Largest number of rows that have keys beside those which they show closed: the page stays below a megabyte."""


class Rows:
    """Makes the rows of a run's lists. summary: the run's; its `out` is the folder that the commands name."""

    def __init__(self, summary: Summary, rollups: RollUps) -> None:
        self._run, self._bucket = summary.out, summary.target.bucket
        self._found = groups.findings(rollups)
        self._opened = groups.openings(rollups)
        self._of_keys: dict[str, list[Group]] = {}
        self._of_policy: list[Group] = []
        for group in self._found:
            rule = groups.rule_of(group)
            if rule is not None and "acl" in rule.reads:
                for one in group.samples:
                    self._of_keys.setdefault(one.key or "", []).append(group)
            elif rule is not None and "bucket.parsed_policy" in rule.reads:
                self._of_policy.append(group)

    def openings(self) -> list[Row]:
        """Return the rows of the objects that are not private."""
        return self._rows(self._opened)

    def findings(self) -> list[Row]:
        """Return the rows of the findings."""
        return self._rows(self._found)

    def _rows(self, found: Sequence[Group]) -> list[Row]:
        shared: dict[tuple[object, ...], list[Group]] = {}
        for group in found:
            who = group.audience if group.rule is None else None
            alone = None if group.count <= WHOLE else group.id
            subject = (group.rule, group.verdict, group.severity, groups.is_intended(group), who, alone)
            shared.setdefault(subject, []).append(group)
        room = len(shared) <= _MANY
        return sorted((self._row(parts, room=room) for parts in shared.values()), key=_rank)

    def _row(self, parts: Sequence[Group], *, room: bool) -> Row:
        group = parts[0] if len(parts) == 1 else _summed(parts)
        samples = [one for one in group.samples if one.key is not None]
        shown = TOGETHER if len(parts) > 1 else WHOLE if group.count <= WHOLE else 1
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
            version = ["--version-id", first.version_id] if first.version_id else []
            key = f"s3://{self._bucket}/{first.key}"
            yield "Say why", _command("auditor", "explain", key, *version, "--run", self._run)
        if hidden and group.prefix is not None:
            lines = _command("auditor", "export", self._run, "--format", "jsonl")
            yield "List all keys", f"{lines} | {_command('jq', '-c', f'select({_condition(group)}) | .key')}"
        if group.verdict is not Verdict.UNKNOWN and not groups.is_intended(group):
            accept = (_command("auditor", "accept", one.id, "--run", self._run) for one in parts[:TOGETHER])
            yield "Accept it", "\n".join(accept)


def _command(*words: str) -> str:
    """Return the words as a shell's: bash, zsh and ksh read the escapes of unprintable characters."""
    return " ".join(shlex.quote(one) if one.isprintable() else f"$'{_escaped(one)}'" for one in words)


def _escaped(text: str) -> str:
    each = (one if one.isprintable() and one not in "\\'" else _bytes(one) for one in text)
    return "".join(each)


def _bytes(character: str) -> str:
    return "".join(f"\\x{one:02x}" for one in character.encode())


def _rank(row: Row) -> tuple[bool, int, bool, int]:
    """Return the row's place: the worst first, then the findings on the bucket, then the largest number."""
    group = row.group
    worst = _VERDICTS.index(group.verdict or Verdict.UNKNOWN)
    if group.severity is not None:
        return False, _SEVERITIES.index(group.severity), not groups.is_of_bucket(group), -group.count
    return groups.is_intended(group), worst, True, -group.count


def _summed(parts: Sequence[Group]) -> Group:
    """Return one group with the sums of small ones."""
    new = [one.new for one in parts if one.new is not None]
    return replace(
        parts[0],
        count=sum(one.count for one in parts),
        bytes=sum(one.bytes for one in parts),
        new=sum(new) if new else None,
        excepted=sum(one.excepted for one in parts),
        since=min((one.since for one in parts if one.since is not None), default=None),
        samples=tuple(sample for one in parts for sample in one.samples),
    )


def _condition(group: Group) -> str:
    """Return the condition of jq on the lines of `auditor export`, in ASCII."""
    if group.rule is not None:
        parts = [f'.kind == "finding" and .rule == {json.dumps(group.rule)}']
    else:
        parts = [f'.kind == "verdict" and .verdict == {json.dumps(group.verdict)}']
    if group.prefix and not group.rest:
        parts.append(f"(.key | startswith({json.dumps(group.prefix)}))")
    return " and ".join(parts)


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
        number, text = max(step.closes - before, 0), f"of {step.of:,} exposed objects close"
        if step.decides:
            objects = "object" if step.decides == 1 else "objects"
            number, text = step.decides, f"undecided {objects} could be decided"
        found.append(FirstChange(step.change[:1].upper() + step.change[1:], _broken(step), number, text))
        before = step.closes
    return tuple(found)


def command_of(step: FirstStep, summary: Summary) -> str:
    """Return the whole command of a change to make first: its prediction, or the files that make it."""
    target = summary.target
    if step.decides:
        return _command("auditor", "policy", target.uri, *(["--versions"] if target.versions else []))
    if step.how:
        return _command("auditor", "what-if", summary.out, *step.how.split())
    return _command("auditor", "fix-kit", summary.out, "--out", "kit")


def nights_of(nights: Iterable[TrendNight]) -> tuple[Night, ...]:
    """Return these nights for a page's curves."""
    return tuple(Night(date.fromisoformat(one.day), _counts(one)) for one in nights if _is_day(one.day))


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


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
    """Return the prefix of the largest group of undecided objects, by call and error code."""
    found: dict[str, tuple[int, str]] = {}
    for group in groups.undecided(rollups):
        if group.audience and group.count > found.get(group.audience, (0, ""))[0]:
            found[group.audience] = (group.count, group.prefix or "")
    return {reason: prefix for reason, (_, prefix) in found.items()}
