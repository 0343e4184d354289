"""Make the content of an audit's page from the files of its run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from auditor.model.access import Verdict
from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.model.finding import Severity
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.version import VERSION
from auditor.reports import words
from auditor.reports.highlights import Highlights
from auditor.reports.page import checked, from_rollups, signs, since
from auditor.reports.page.coverage import counts, coverage_bar
from auditor.reports.page.curve import Night, curve, spark
from auditor.reports.page.data import ExceptionRow, FirstChange, NumberCard, PageData
from auditor.reports.page.groups import ticks, view_of
from auditor.reports.page.headline import headline
from auditor.reports.page.hole_rows import hole_rows
from auditor.reports.page.picture_data import Sign
from auditor.reports.summary import failed_of
from auditor.reports.verdict_sentence import new_objects
from auditor.runs.bucket_file import BucketFile
from auditor.text import counted

DAMAGED_RULE: Final = "I03"
_MANY: Final = 120
_FEW: Final = 2
"""Samples of a group where there are many groups: the page stays below a megabyte."""

_ENDS: Final = {
    ExceptionState.EXPIRED: "has ended: it counts again",
    ExceptionState.UNUSED: "matched nothing: remove it",
    ExceptionState.SHADOWED: "others cover all of it: remove it",
}


class PageSource(Struct, frozen=True, kw_only=True):
    """The files of a run of which its page is made. shown: some undecided objects of the run. bucket: bucket.json."""

    summary: Summary
    shown: Highlights
    bucket: BucketFile
    rollups: RollUps


def page_data(source: PageSource) -> PageData:
    """Return the whole content of the page."""
    summary, rollups, changes = source.summary, source.rollups, source.summary.changes
    groups, first = from_rollups.groups_of(rollups), from_rollups.first_changes(rollups)
    nights, intended, new = from_rollups.nights_of(rollups.nights), summary.excepted.verdicts, new_objects(changes)
    samples = _FEW if len(groups) > _MANY else None
    views = [view_of(group, samples) for group in groups]
    findings = tuple(view for view in views if view.rule)
    exposed = intended.get(Verdict.EXPOSED, 0)
    top = headline(summary, exposed, new[Verdict.EXPOSED] if new else None, first)
    return PageData(
        title=f"{summary.verdicts[Verdict.EXPOSED] - exposed:,} exposed in {top.target}",
        headline=top,
        cards=tuple(_cards(summary, nights)),
        first=first,
        since=since.heading(changes),
        changes=tuple(since.change_cards(changes)),
        unchanged=since.unchanged(changes),
        causes=since.causes(changes),
        curve=curve(nights, Verdict.EXPOSED),
        coverage=coverage_bar(summary, intended),
        places=from_rollups.places_in(rollups),
        openings=tuple(view for view in views if not view.rule),
        findings=findings,
        total=sum(summary.findings.values()),
        ticks=ticks(findings),
        holes=tuple(hole_rows(summary, source.shown, from_rollups.undecided_places(rollups))),
        exceptions=tuple(_exception_rows(summary.exceptions)),
        rules=(rules := checked.rule_rows(summary, source.bucket)),
        rules_words=checked.in_words(rules),
        settings=tuple(checked.settings(source.bucket)),
        numbers=tuple(checked.numbers(summary)),
        not_looked_at=summary.not_looked_at,
        footer=_footer(summary),
        copy=tuple(_copied(top.title, top.emphasis, top.bold, top.lead, first)),
    )


def _exception_rows(found: Iterable[ExceptionUse]) -> Iterator[ExceptionRow]:
    """Yield a row for each entry, with a word on the work that it leaves to its owner."""
    for one in found:
        until, word = words.short_date(one.until), _ENDS.get(one.state, "")
        ends = ", ".join(part for part in (until, word) if part) or "no end"
        yield ExceptionRow(one.id, _covered(one), one.matched, one.owner or "–", one.reason, ends, bool(word))


def _covered(one: ExceptionUse) -> str:
    what = one.rule or (one.verdict.value if one.verdict else "holes" if one.hole else "everything")
    parts = [what if not (one.hole and one.rule) else f"holes of {one.rule}"]
    if one.prefix:
        parts.append(f"below {one.prefix}")
    if one.pattern:
        parts.append(f"matching {one.pattern}")
    if who := words.grantee(one.grantee) or words.audience(one.audience):
        parts.append(f"for {who}")
    return " ".join(parts)


def _cards(summary: Summary, nights: Sequence[Night]) -> Iterator[NumberCard]:
    numbers = counts(summary, summary.excepted.verdicts)
    yield _card(summary, nights, signs.EXPOSED, numbers[signs.EXPOSED], filters=True)
    yield _card(summary, nights, signs.SHARED, numbers[signs.SHARED], filters=True)
    holes = summary.coverage.undecided
    yield NumberCard(signs.UNDECIDED, holes, _undecided(summary, numbers[signs.UNKNOWN]), spark(nights, "undecided"))
    if numbers[signs.INTENDED] or summary.exceptions:
        yield _card(summary, nights, signs.INTENDED, numbers[signs.INTENDED], filters=False)
    else:
        sign = signs.held_back(numbers)
        yield _card(summary, nights, sign, numbers[sign], filters=True)
    if damaged := summary.rules.get(DAMAGED_RULE):
        yield NumberCard(signs.CHANGED_BYTES, damaged, "not what was recorded")
    else:
        found = summary.findings
        grave = found[Severity.CRITICAL] + found[Severity.HIGH]
        yield NumberCard(signs.LOUD, grave, f"of {sum(found.values()):,} findings", spark(nights, signs.LOUD.name))


def _card(summary: Summary, nights: Sequence[Night], sign: Sign, number: int, *, filters: bool) -> NumberCard:
    new = new_objects(summary.changes)
    said = f"{new.get(sign.name, 0):,} new since the last run" if new else _part(number, summary.coverage.listed)
    if sign is signs.INTENDED:
        said = "covered by an exception"
    return NumberCard(sign, number, said, spark(nights, sign.name), filters)


def _part(number: int, listed: int) -> str:
    if not number or not listed:
        return f"of {listed:,} listed"
    part = 100 * number / listed
    return f"{part:.1f} % of {listed:,} listed" if part >= 0.05 else f"less than 0.1 % of {listed:,} listed"


def _undecided(summary: Summary, unknown: int) -> str:
    rules = len(summary.rules_undecided)
    parts = [f"{rules:,} {'rule' if rules == 1 else 'rules'} too"] if rules else []
    if unknown:
        parts.append(f"{unknown:,} with an unknown verdict")
    if failed := failed_of(summary):
        parts.append(f"{counted(sum(failed.values()), 'object')} not hashed")
    return "; ".join(parts) or "everything asked for was read"


def _footer(summary: Summary) -> str:
    return f"auditor {VERSION} · engine {words.short_id(summary.engine)}"


def _copied(title: tuple[str, str], emphasis: str, bold: str, lead: str, first: Sequence[FirstChange]) -> Iterator[str]:
    yield f"{title[0]}{emphasis}{title[1]}"
    yield f"{bold} {lead}".strip()
    for number, step in enumerate(first, 1):
        yield f"{number}. {step.change}: {step.number:,} {step.words}"
