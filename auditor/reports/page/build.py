"""Make the content of an audit's page from the files of its run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.version import VERSION
from auditor.reports import words
from auditor.reports.highlights import Highlights
from auditor.reports.page import checked, from_rollups, signs, since
from auditor.reports.page.coverage import counts, coverage_bar
from auditor.reports.page.curve import Night, curve, spark
from auditor.reports.page.data import ChangeCard, ExceptionRow, FirstChange, NumberCard, PageData
from auditor.reports.page.exception_rows import exception_rows
from auditor.reports.page.from_rollups import GroupFacts
from auditor.reports.page.groups import ticks, view_of
from auditor.reports.page.headline import headline
from auditor.reports.page.hole_rows import hole_rows
from auditor.reports.page.picture_data import Places, Sign
from auditor.reports.summary import failed_of
from auditor.reports.verdict_sentence import new_objects
from auditor.runs.bucket_file import BucketFile
from auditor.text import counted

DAMAGED_RULE: Final = "I03"
_MANY: Final = 120
_FEW: Final = 2
"""Samples of a group where there are many groups: the page stays below a megabyte."""


class PageSource(Struct, frozen=True, kw_only=True):
    """The files of a run of which its page is made.

    shown: some undecided objects of the run. groups, places, first: from the roll-ups. new: number of new objects by
    verdict. intended: number of objects by verdict that an exception covers. holes: the prefix that has most objects of
    each call and error code, undecided ones.
    """

    summary: Summary
    shown: Highlights
    bucket: BucketFile
    groups: Sequence[GroupFacts]
    places: Places | None = None
    first: tuple[FirstChange, ...] = ()
    since: str = ""
    changes: tuple[ChangeCard, ...] = ()
    unchanged: str = ""
    causes: tuple[str, ...] = ()
    new: Mapping[str, int] | None = None
    nights: Sequence[Night] = ()
    exceptions: tuple[ExceptionRow, ...] = ()
    intended: Mapping[str, int] = field(default_factory=dict)
    holes: Mapping[str, str] = field(default_factory=dict)


def source_of(summary: Summary, shown: Highlights, bucket: BucketFile, rollups: RollUps) -> PageSource:
    """Return the source of a run's page."""
    changes = summary.changes
    return PageSource(
        summary=summary,
        shown=shown,
        bucket=bucket,
        since=since.heading(changes),
        changes=tuple(since.change_cards(changes)),
        unchanged=since.unchanged(changes),
        causes=since.causes(changes),
        new=new_objects(changes),
        exceptions=tuple(exception_rows(summary.exceptions)),
        intended=dict(summary.excepted.verdicts),
        groups=from_rollups.groups_of(rollups),
        places=from_rollups.places_in(rollups),
        first=from_rollups.first_changes(rollups),
        holes=from_rollups.undecided_places(rollups),
        nights=from_rollups.nights_of(rollups.nights),
    )


def page_data(source: PageSource) -> PageData:
    """Return the whole content of the page."""
    summary = source.summary
    samples = _FEW if len(source.groups) > _MANY else None
    views = [view_of(replace(group, samples=group.samples[:samples])) for group in source.groups]
    findings = tuple(view for view in views if view.rule)
    exposed = source.intended.get(Verdict.EXPOSED, 0)
    top = headline(summary, exposed, source.new.get(Verdict.EXPOSED) if source.new else None, source.first)
    return PageData(
        title=f"{summary.verdicts[Verdict.EXPOSED] - exposed:,} exposed in {top.target}",
        headline=top,
        cards=tuple(_cards(source)),
        first=source.first,
        since=source.since,
        changes=source.changes,
        unchanged=source.unchanged,
        causes=source.causes,
        curve=curve(source.nights, Verdict.EXPOSED),
        coverage=coverage_bar(summary, source.intended),
        places=source.places,
        openings=tuple(view for view in views if not view.rule),
        findings=findings,
        total=sum(summary.findings.values()),
        ticks=ticks(findings),
        holes=tuple(hole_rows(summary, source.shown, source.holes)),
        exceptions=source.exceptions,
        rules=(rules := checked.rule_rows(summary, source.bucket)),
        rules_words=checked.in_words(rules),
        settings=tuple(checked.settings(source.bucket)),
        numbers=tuple(checked.numbers(summary)),
        not_looked_at=summary.not_looked_at,
        footer=_footer(summary),
        copy=tuple(_copied(top.title, top.emphasis, top.bold, top.lead, source.first)),
    )


def _cards(source: PageSource) -> Iterator[NumberCard]:
    summary, numbers = source.summary, counts(source.summary, source.intended)
    yield _card(source, signs.EXPOSED, numbers[signs.EXPOSED], filters=True)
    yield _card(source, signs.SHARED, numbers[signs.SHARED], filters=True)
    holes = summary.coverage.undecided
    yield NumberCard(
        signs.UNDECIDED, holes, _undecided(source, numbers[signs.UNKNOWN]), spark(source.nights, "undecided")
    )
    if numbers[signs.INTENDED] or source.exceptions:
        yield _card(source, signs.INTENDED, numbers[signs.INTENDED], filters=False)
    else:
        sign = signs.held_back(numbers)
        yield _card(source, sign, numbers[sign], filters=True)
    if damaged := summary.rules.get(DAMAGED_RULE):
        yield NumberCard(signs.CHANGED_BYTES, damaged, "not what was recorded")
    else:
        found = summary.findings
        grave = found[Severity.CRITICAL] + found[Severity.HIGH]
        yield NumberCard(
            signs.LOUD, grave, f"of {sum(found.values()):,} findings", spark(source.nights, signs.LOUD.name)
        )


def _card(source: PageSource, sign: Sign, number: int, *, filters: bool) -> NumberCard:
    new = source.new.get(sign.name, 0) if source.new else None
    said = f"{new:,} new since the last run" if new is not None else _part(number, source.summary.coverage.listed)
    if sign is signs.INTENDED:
        said = "covered by an exception"
    return NumberCard(sign, number, said, spark(source.nights, sign.name), filters)


def _part(number: int, listed: int) -> str:
    if not number or not listed:
        return f"of {listed:,} listed"
    part = 100 * number / listed
    return f"{part:.1f} % of {listed:,} listed" if part >= 0.05 else f"less than 0.1 % of {listed:,} listed"


def _undecided(source: PageSource, unknown: int) -> str:
    rules = len(source.summary.rules_undecided)
    parts = [f"{rules:,} {'rule' if rules == 1 else 'rules'} too"] if rules else []
    if unknown:
        parts.append(f"{unknown:,} with an unknown verdict")
    if failed := failed_of(source.summary):
        parts.append(f"{counted(sum(failed.values()), 'object')} not hashed")
    return "; ".join(parts) or "everything asked for was read"


def _footer(summary: Summary) -> str:
    return f"auditor {VERSION} · engine {words.short_id(summary.engine)}"


def _copied(title: tuple[str, str], emphasis: str, bold: str, lead: str, first: Sequence[FirstChange]) -> Iterator[str]:
    yield f"{title[0]}{emphasis}{title[1]}"
    yield f"{bold} {lead}".strip()
    for number, step in enumerate(first, 1):
        yield f"{number}. {step.change}: {step.number:,} {step.words}"
