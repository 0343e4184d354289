"""The rows of the page's lists, its map's counts, its trend and its first changes, from the roll-ups of the run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Final

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import FirstStep, Group, RollUps, TrendNight
from auditor.reports import groups, phrases
from auditor.reports.page import signs
from auditor.reports.page.data import FirstChange, GroupView, SampleView, Tick
from auditor.reports.page.pictures import Night, PlaceCount, Places, places_of

_WHAT_IF: Final = "auditor what-if RUN"


def places_in(rollups: RollUps) -> Places | None:
    """Return the map of the objects that are not private; None if all of them are in the whole bucket's groups."""
    counts = list(_place_counts(rollups))
    return places_of(counts) if any(one.prefix for one in counts) else None


def _place_counts(rollups: RollUps) -> Iterator[PlaceCount]:
    for group in groups.openings(rollups):
        sign = signs.BY_VERDICT.get(group.verdict or "")
        if sign is None:
            continue
        prefix, left = group.prefix or "", group.count - group.excepted
        yield PlaceCount(prefix, sign, left, min(group.new or 0, left), group.id)
        yield PlaceCount(prefix, signs.INTENDED, group.excepted, 0, group.id)


def first_changes(rollups: RollUps) -> tuple[FirstChange, ...]:
    """Return the changes to make first, each with the number of objects that it closes beyond those before it."""
    found, before = [], 0
    for step in rollups.first:
        how = f"{_WHAT_IF} {step.how}" if step.how else ""
        number, text = max(step.closes - before, 0), f"of {step.of:,} exposed objects close"
        if step.decides:
            objects = "object" if step.decides == 1 else "objects"
            number, text = step.decides, f"undecided {objects} could be decided"
        sentence = step.change[:1].upper() + step.change[1:]
        found.append(FirstChange(sentence, _broken(step), number, text, how))
        before = step.closes
    return tuple(found)


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
    excepted, findings = night.excepted or {}, night.findings or {}
    left = {verdict: number - excepted.get(verdict, 0) for verdict, number in night.verdicts.items()}
    return {
        **left,
        "undecided": night.undecided or 0,
        signs.INTENDED.name: sum(excepted.values()),
        signs.LOUD.name: findings.get(Severity.CRITICAL, 0) + findings.get(Severity.HIGH, 0),
    }


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


_GROUP_ID: Final = re.compile("[0-9a-f]{12}")


def view_of(group: Group, most: int | None = None) -> GroupView:
    """Return the group as the list shows it. most: largest number of samples; None for all."""
    of_bucket, said = groups.is_of_bucket(group), groups.sentence(group)
    samples = tuple(SampleView(one.key, one.version_id) for one in group.samples if one.key is not None)[:most]
    return GroupView(
        id=group.id,
        kind=_kind(group),
        severity=group.severity.value if group.severity else "",
        verdict=group.verdict.value if group.verdict else "bucket" if of_bucket else "",
        sign=signs.BY_VERDICT.get(group.verdict) if group.verdict else None,
        before=said.start,
        subject=said.subject,
        after=said.after,
        prefix=None if of_bucket else group.prefix,
        count=group.count,
        new=group.new or 0,
        new_words=groups.new_words(group),
        excepted=group.excepted,
        rule=group.rule or "",
        rows=tuple(_rows(group)),
        why=groups.meaning(group),
        fix=groups.mend(group),
        samples=samples,
        more="" if of_bucket else _more(group, len(samples)),
        command="" if of_bucket else _command(group, len(samples)),
    )


def _kind(group: Group) -> str:
    """Return the first word of the group's line: its severity, its verdict, or that it is meant."""
    if group.severity:
        return group.severity.value
    if groups.is_intended(group):
        return "by intent"
    return (group.verdict or Verdict.UNKNOWN).value


def ticks(views: Iterable[GroupView]) -> tuple[Tick, ...]:
    """Return the filters of the list: severities, verdicts and new ones, of which there is at least one group."""
    many = list(views)
    severities = Counter(group.severity for group in many)
    verdicts = Counter(group.verdict for group in many)
    new = sum(1 for group in many if group.new)
    found = [Tick("sev", one.value, one.value, "", severities[one]) for one in Severity if severities[one]]
    found += [
        Tick("verdict", name, name, sign.mark, verdicts[name])
        for name, sign in signs.BY_VERDICT.items()
        if verdicts[name]
    ]
    if new:
        found.append(Tick("new", "1", "new", "", new))
    return tuple(found)


def _rows(group: Group) -> Iterable[tuple[str, str]]:
    rule, who = groups.rule_of(group), groups.audience(group)
    if group.rule is not None:
        yield "Rule", f"{group.rule} {rule.name}" if rule else group.rule
    if who and group.rule is not None:
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
    if _GROUP_ID.fullmatch(group.id) and (group.rule is not None or group.verdict is not Verdict.UNKNOWN):
        yield "Accept it", f"auditor accept {group.id} --run RUN"


def _more(group: Group, shown: int) -> str:
    left = group.count - shown
    return f"{'and ' if shown else ''}{left:,} more in the run folder" if left > 0 else ""


def _command(group: Group, shown: int) -> str:
    """Return a command that lists the group's keys. No text from outside is in it: people paste it into a shell."""
    if group.count <= shown:
        return ""
    if groups.rule_of(group):
        return f"zcat findings/*.gz | jq -c 'select(.rule == \"{group.rule}\") | .key'"
    if group.rule is None and group.verdict is not None:
        return f"zcat objects/*.gz | jq -c 'select(.verdict == \"{group.verdict.value}\") | .key'"
    return ""
