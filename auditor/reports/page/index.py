"""Make the content of the index page: a line for each target, sums that add up, and one verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, islice, permutations
from operator import attrgetter
from typing import Final

from msgspec import Struct

from auditor.model.estate import AccountResult, EarlierEstate, EstateReport
from auditor.model.finding import Severity
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.model.version import VERSION
from auditor.reports import phrases
from auditor.reports.page import signs
from auditor.reports.page.data import Chip, Headline, NumberCard
from auditor.reports.page.pictures import CoverageBar, Night, Spark, counts, coverage_bar, spark
from auditor.reports.page.rows import nights_of
from auditor.reports.page.signs import Sign
from auditor.reports.summary import (
    UNCHECKED,
    IndexEntry,
    accepted,
    added_up,
    alarming,
    counting,
    has_hole,
    holes,
    new_exposed,
    sentence_parts,
    sum_of,
    summaries_of,
    verdict_sentence,
)
from auditor.text import counted, visible

OLD: Final = timedelta(hours=36)
"""A target whose run is so much older than the newest one was left out of a night: its numbers are a hole."""
COLUMNS: Final = ("exposed", "new", "not checked", "critical, high", "listed")
_FAILED: Final = Sign("rest", "not audited", "✕", "no result")
_EXCLUDED: Final = Sign("rest", "excluded", "–", "left out by name")
_HOLE: Final = Sign("unknown", "with holes", "?", "something could not be read")
_EMPTY: Final = Sign("rest", "nothing listed", "–", "there were no objects to look at")
_CLOSED: Final = Sign("intended", "closed", "✓", "nothing is open to others")
_OVERLAPS: Final = 5
SHOWN: Final = 2
"""Number of targets that a list shows before it is opened."""

AnyEstate = EstateReport | EarlierEstate


class TargetRow(Struct, frozen=True):
    """One target. sign: its worst objects, or its failure. link: relative address of its report; None if it has none.
    sentence: its verdict in words. numbers: in the order of the columns; None for one that is not known. bad: True for
    a hole. aside: the hole in words, or "". day: when its run began, in words. account: in words; "" if the page
    has one only.
    """

    sign: Sign
    target: str
    link: str | None
    sentence: str
    numbers: tuple[int | None, ...]
    bad: bool = False
    aside: str = ""
    day: str = ""
    spark: Spark | None = None
    account: str = ""


class TargetList(Struct, frozen=True):
    """The targets of one sign, the largest numbers first. has_numbers: False for targets without a run, which have a
    reason in place of numbers. grave: True for a list that paper has whole. shown: number of rows that the page shows
    before the list is opened.
    """

    sign: Sign
    rows: tuple[TargetRow, ...]
    has_numbers: bool
    grave: bool
    shown: int = SHOWN


class IndexPage(Struct, frozen=True, kw_only=True):
    """The whole content of the index page. columns: the names of the numbers. lists: of the targets, those with exposed
    objects first, then those that were not audited. totals: the sums of the numbers over all rows; None for one that no
    row knows. accounts: of the estates on the page, each with its
    name.
    """

    title: str
    headline: Headline
    cards: tuple[NumberCard, ...]
    coverage: CoverageBar
    columns: tuple[str, ...]
    lists: tuple[TargetList, ...]
    totals: tuple[int | None, ...]
    footer: str
    accounts: tuple[tuple[str, AccountResult], ...] = ()

    @property
    def rows(self) -> tuple[TargetRow, ...]:
        """The rows of all lists."""
        return tuple(row for one in self.lists for row in one.rows)


def index_page(entries: Iterable[IndexEntry], place: str, estates: Sequence[AnyEstate] = ()) -> IndexPage:
    """Return the content of the page. place: the URI or the path below which the runs are. estates: those whose buckets
    are among the entries.
    """
    found = list(entries)
    newest = max((moment for one in found if (moment := _moment(one)) is not None), default=None)
    rows = sorted((_row(one, newest) for one in found), key=_order)
    whole = sum_of(found)
    totals = tuple(_total(row.numbers[at] for row in rows) for at in range(len(COLUMNS)))
    numbers = counts(whole)
    return IndexPage(
        title=f"{numbers[signs.EXPOSED]:,} exposed in {counted(len(found), 'target')}",
        headline=_headline(found, rows, place, newest, whole, estates),
        cards=tuple(_cards(found, rows, whole)),
        coverage=coverage_bar(whole),
        columns=COLUMNS,
        lists=tuple(_lists(rows)),
        totals=totals,
        footer=f"auditor {VERSION} · the sums are those of the {counted(len(summaries_of(found)), 'run')} named above",
        accounts=_account_rows(estates),
    )


def _moment(entry: IndexEntry) -> datetime | None:
    return phrases.began(entry.summary.run) if entry.summary is not None else None


def _row(entry: IndexEntry, newest: datetime | None) -> TargetRow:
    target, summary, moment = entry.name, entry.summary, _moment(entry)
    if entry.excluded is not None or summary is None:
        bad, why = entry.excluded is None, entry.excluded or entry.failed or "there is no run of it"
        sign = _FAILED if bad else _EXCLUDED
        return TargetRow(sign, target, None, "", (None,) * len(COLUMNS), bad, why, account=entry.account)
    numbers, new = counts(summary), new_exposed(summary)
    aside = holes(summary, UNCHECKED)
    if newest is not None and moment is not None and newest - moment > OLD:
        aside.append(f"no complete run since {phrases.short_date(moment.isoformat())}")
    if entry.failed:
        aside.append(entry.failed)
    return TargetRow(
        sign=_sign(numbers, bool(aside) and not summary.nothing_listed, summary.coverage.listed),
        target=target,
        link=entry.link,
        sentence=verdict_sentence(summary),
        numbers=(
            numbers[signs.EXPOSED],
            new,
            summary.coverage.undecided,
            counting(summary, Severity.CRITICAL) + counting(summary, Severity.HIGH),
            summary.coverage.listed,
        ),
        bad=bool(aside),
        aside="; ".join(aside),
        day=f"{moment.day} {moment:%b %H:%M}" if moment else "",
        spark=spark(nights_of(entry.nights), signs.EXPOSED.name),
        account=entry.account,
    )


def _sign(numbers: dict[Sign, int], hole: bool, listed: int) -> Sign:
    if numbers[signs.EXPOSED]:
        return signs.EXPOSED
    if hole:
        return _HOLE
    if not listed:  # a prefix with a mistake lists nothing either
        return _EMPTY
    return next((sign for sign in (signs.UNKNOWN, signs.SHARED) if numbers[sign]), _CLOSED)


_ORDER: Final = (signs.EXPOSED, _FAILED, _HOLE, signs.UNKNOWN, signs.SHARED, _EMPTY, _CLOSED, _EXCLUDED)


def _order(row: TargetRow) -> tuple[int, int, str]:
    """Return the place of a row: the worst ones first, then failures, the largest numbers first."""
    return _ORDER.index(row.sign), -(row.numbers[0] or 0), row.target


def _lists(rows: Iterable[TargetRow]) -> Iterator[TargetList]:
    """Yield a list for each sign. rows: in their order."""
    for sign, several in groupby(rows, key=attrgetter("sign")):
        yield TargetList(sign, tuple(several), sign not in (_FAILED, _EXCLUDED), sign in _ORDER[:3])


def _total(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _headline(
    entries: Sequence[IndexEntry],
    rows: Sequence[TargetRow],
    place: str,
    newest: datetime | None,
    whole: Summary,
    estates: Sequence[AnyEstate],
) -> Headline:
    runs = summaries_of(entries)
    title = sentence_parts(whole, _total(row.numbers[1] for row in rows))
    exposed = sum(row.sign is signs.EXPOSED for row in rows)
    bold = f"{exposed:,} of {counted(len(rows), 'target')} {'has' if exposed == 1 else 'have'} exposed objects."
    bold = bold if exposed else ""
    lead = f"{counted(whole.coverage.listed, 'listed object')} of {counted(len(runs), 'target')}"
    lead = f"{lead} are accounted for." if runs else ""
    if len(estates) == 1:  # the line that adds up its buckets
        bold, lead = f"{estates[0].line}.", f"{bold} {lead}".strip()
    return Headline(
        kicker="Audits in",
        target=place,
        when=phrases.long_date(newest) if newest else "",
        title=title if runs else ("No target was audited.", "", ""),
        bad=any(row.bad for row in rows) or alarming(whole),
        bold=bold,
        lead=lead,
        chips=tuple(_chips(runs, rows)),
        notes=(*_estate_notes(estates), *_notes(entries, newest)),
    )


def _chips(runs: Sequence[Summary], rows: Sequence[TargetRow]) -> Iterable[Chip]:
    bad, missing = sum(row.bad for row in rows), sum(row.sign is _FAILED for row in rows)
    excluded = sum(row.sign is _EXCLUDED for row in rows)
    state = "listing complete" if any(map(has_hole, runs)) else "complete"
    number = counted(len(rows) - excluded, "target")
    yield Chip(number) if bad else Chip(f"✓ {number}, each {state}", "ok")
    if excluded:
        yield Chip(f"{excluded:,} excluded", "warn")
    if missing:
        yield Chip(f"{missing:,} not audited", "warn")
    if bad > missing:
        yield Chip(f"{counted(bad - missing, 'target')} with holes", "warn")
    elif not bad:
        yield Chip("no hole but accepted ones" if any(map(accepted, runs)) else "no hole", "ok")


def _notes(entries: Sequence[IndexEntry], newest: datetime | None) -> Iterable[str]:
    moments = [moment for one in entries if (moment := _moment(one)) is not None]
    if newest is not None and (oldest := min(moments)).date() != newest.date():
        yield f"The runs were made on several days: the oldest began on {phrases.long_date(oldest)}."
    for inner, outer in _overlaps(entries):
        yield f"{visible(inner)} is inside {visible(outer)}: its objects count twice in the sums."
    fewer = sum(one.summary is not None and one.summary.changes.against is None for one in entries)
    if fewer and fewer < len(moments):
        verb = "is" if fewer == 1 else "are"
        first = f"{counted(fewer, 'target')} had no earlier run to compare with"
        yield f"{first}, and {verb} not in the sum of new objects."


def _overlaps(entries: Sequence[IndexEntry]) -> Iterable[tuple[str, str]]:
    """Yield the URIs of two targets of which the first lies in the second, for at most _OVERLAPS pairs. Targets without
    a summary are skipped.
    """
    by_bucket: dict[str, list[Target]] = {}
    for one in entries:
        if one.summary is not None:
            by_bucket.setdefault(one.target.bucket, []).append(one.target)
    found = (
        (inner.uri, outer.uri)
        for several in by_bucket.values()
        for inner, outer in permutations(several, 2)
        if inner.prefix.startswith(outer.prefix)
    )
    return islice(found, _OVERLAPS)


def _cards(entries: Sequence[IndexEntry], rows: Sequence[TargetRow], whole: Summary) -> Iterable[NumberCard]:
    runs, nights, numbers = summaries_of(entries), summed_nights(entries), counts(whole)
    of = f"in {{}} of {counted(len(rows), 'target')}"
    each = list(map(counts, runs))

    def part(sign: Sign) -> str:
        return of.format(f"{sum(bool(one[sign]) for one in each):,}")

    for sign in (signs.EXPOSED, signs.SHARED):
        yield NumberCard(sign, numbers[sign], part(sign), spark(nights, sign.name))
    undecided = sum(bool(one.coverage.undecided or one.rules_undecided) for one in runs)
    yield NumberCard(signs.UNDECIDED, whole.coverage.undecided, of.format(f"{undecided:,}"), spark(nights, "undecided"))
    sign = signs.INTENDED if numbers[signs.INTENDED] else signs.held_back(numbers)
    yield NumberCard(sign, numbers[sign], part(sign), spark(nights, sign.name))


def summed_nights(entries: Sequence[IndexEntry]) -> tuple[Night, ...]:
    """Return the trend of all targets together. A day on which a target has no complete run has no sum."""
    trends = [{night.day: night.counts for night in nights_of(one.nights)} for one in entries if one.excluded is None]
    if not trends or not all(trends):
        return ()
    first = max(map(min, trends))
    days = sorted({day for trend in trends for day in trend if day >= first})
    each = ((day, [trend.get(day) for trend in trends]) for day in days)
    return tuple(Night(day, None if None in found else added_up({}, found)) for day, found in each)


def _estate_notes(estates: Sequence[AnyEstate]) -> list[str]:
    """Return the sentences below the headline, each once."""
    lines = [f"{one.folder}: {one.line}" if one.folder else one.line for one in estates] if len(estates) > 1 else []
    notes = [note for one in estates for note in one.notes]
    unseen = [f"Not looked at: {words}" for one in estates for words in one.not_looked_at]
    return list(dict.fromkeys([*lines, *notes, *unseen]))


def _account_rows(estates: Sequence[AnyEstate]) -> tuple[tuple[str, AccountResult], ...]:
    """Return the accounts, those with holes first, each with its name on the page."""
    found: list[tuple[str, AccountResult]] = []
    for estate in estates:
        of = f", {estate.folder}" if len(estates) > 1 and estate.folder else ""
        found += [(f"{one.words}{of}", one) for one in estate.accounts]
    return tuple(sorted(found, key=lambda row: (row[1].hole is None, -row[1].counts.holes, row[0])))
