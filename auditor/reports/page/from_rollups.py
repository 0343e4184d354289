"""Take a page's groups, map and first changes from the roll-ups of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Final

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import FirstStep, Group, GroupKind, RollUps, TrendNight
from auditor.reports import words
from auditor.reports.page import signs
from auditor.reports.page.curve import Night
from auditor.reports.page.data import FirstChange
from auditor.reports.page.picture_data import Places
from auditor.reports.page.places import PlaceCount, places_of

_WIDEST: Final = {verdict: place for place, verdict in enumerate(Verdict)}
_WHAT_IF: Final = "auditor what-if RUN"


def groups_of(rollups: RollUps) -> list[Group]:
    """Return the groups of the lists: those of verdicts, the widest first, then those of findings as they come."""
    verdicts = [group for group in rollups.groups if group.kind is GroupKind.VERDICT]
    verdicts.sort(key=lambda group: (_WIDEST.get(group.verdict or Verdict.MASKED, 9), -group.count, group.id))
    findings = [group for group in rollups.groups if group.kind is GroupKind.FINDING]
    return [*verdicts, *findings]


def places_in(rollups: RollUps) -> Places | None:
    """Return the map of the objects that are not private; None if all of them are in the whole bucket's groups."""
    counts = list(_place_counts(rollups))
    return places_of(counts) if any(one.prefix for one in counts) else None


def _place_counts(rollups: RollUps) -> Iterator[PlaceCount]:
    for group in rollups.groups:
        sign = signs.BY_VERDICT.get(group.verdict or "")
        if group.kind is not GroupKind.VERDICT or sign is None:
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
        parts.append(f"{', '.join(words.audience(one) for one in step.breaks[:3])} would lose access")
    if step.intended:
        parts.append(f"closes {step.intended:,} that are public by intent, too")
    return "; ".join(parts)


def undecided_places(rollups: RollUps) -> dict[str, str]:
    """Return the prefix of the largest group of undecided objects, by call and error code."""
    found: dict[str, tuple[int, str]] = {}
    for group in rollups.groups:
        if group.kind is GroupKind.UNDECIDED and group.audience and group.count > found.get(group.audience, (0, ""))[0]:
            found[group.audience] = (group.count, group.prefix or "")
    return {reason: prefix for reason, (_, prefix) in found.items()}
