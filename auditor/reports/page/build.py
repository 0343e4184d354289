"""Make the content of an audit's page from the files of its run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.reports import phrases
from auditor.reports.changes import cause_words
from auditor.reports.page import rows, sections, signs
from auditor.reports.page.data import Chip, FirstChange, Headline, NumberCard, PageData
from auditor.reports.page.pictures import Night, counts, coverage_bar, curve, spark
from auditor.reports.summary import (
    UNCHECKED,
    accepted,
    alarming,
    completeness,
    exposed,
    holes,
    new_exposed,
    new_objects,
    sentence_parts,
)
from auditor.runs.run_files import RunPlan
from auditor.text import counted, visible

DAMAGED_RULE: Final = "I03"


def page_data(summary: Summary, bucket: RunPlan, rollups: RollUps, index: str | None = None) -> PageData:
    """Return the whole content of the page of a run. bucket: its run.json. index: relative address of the index
    page; None if there is none.
    """
    changes = summary.changes
    first, nights = rows.first_changes(rollups), rows.nights_of(rollups.nights)
    found = rows.Rows(summary, rollups)
    top = headline(summary, first)
    so_far = f"{completeness(summary)}: {counted(summary.coverage.listed, 'object')} listed so far"
    known = f"{exposed(summary):,} exposed in {top.target}"
    checked = sections.rule_rows(summary, bucket)
    return PageData(
        summary=summary,
        index=index,
        banner="" if summary.complete else f"{so_far}.",
        title=f"{so_far}, {known}" if not summary.complete else known,
        headline=top,
        cards=list(_cards(summary, nights)),
        first=[(change, rows.command_of(step, summary)) for change, step in zip(first, rollups.first, strict=True)],
        since=sections.heading(changes),
        changes=list(sections.change_cards(changes)),
        unchanged=sections.unchanged(changes),
        causes=list(map(cause_words, changes.causes)),
        curve=curve(nights, Verdict.EXPOSED),
        coverage=coverage_bar(summary),
        places=rows.places_in(found.openings, rollups),
        openings=found.openings,
        findings=found.findings,
        ticks=list(rows.ticks(found.findings)),
        holes=list(sections.hole_rows(summary, rows.undecided_places(rollups))),
        rules=checked,
        rules_words=sections.rules_in_words(checked),
        settings=list(sections.settings(bucket)),
        numbers=list(sections.numbers(summary)),
    )


def _cards(summary: Summary, nights: Sequence[Night]) -> Iterator[NumberCard]:
    numbers, new = counts(summary), new_objects(summary.changes)
    by_intent = numbers[signs.INTENDED] or summary.exceptions
    for sign in (signs.EXPOSED, signs.SHARED, signs.INTENDED if by_intent else signs.held_back(numbers)):
        number = numbers[sign]
        said = f"{new.get(sign.name, 0):,} new since the last run" if new else _part(number, summary.coverage.listed)
        said = "covered by an exception" if sign is signs.INTENDED else said
        yield NumberCard(sign, number, said, spark(nights, sign.name), filters=True)
    words = _undecided(summary, numbers[signs.UNKNOWN])
    yield NumberCard(signs.UNDECIDED, summary.coverage.undecided, words, spark(nights, "undecided"))
    if damaged := summary.rules.get(DAMAGED_RULE):
        yield NumberCard(signs.CHANGED_BYTES, damaged, "not what was recorded")


def _part(number: int, listed: int) -> str:
    if not number or not listed:
        return f"of {listed:,} listed"
    part = 100 * number / listed
    return f"{part:.1f} % of {listed:,} listed" if part >= 0.05 else f"less than 0.1 % of {listed:,} listed"


def _undecided(summary: Summary, unknown: int) -> str:
    rules = len(summary.rules_undecided)
    parts = [f"{counted(rules, 'rule')} too"] if rules else []
    if unknown:
        parts.append(f"{unknown:,} with an unknown verdict")
    nothing = "every requested fact about objects was read" if summary.complete else "of the objects listed so far"
    return "; ".join(parts) or nothing


def headline(summary: Summary, first: tuple[FirstChange, ...]) -> Headline:
    """Return the headline."""
    moment = phrases.began(summary.run)
    return Headline(
        kicker="Audit of",
        target=f"s3://{summary.target.bucket}/{summary.target.prefix}",
        when=phrases.long_date(moment) if moment else "",
        title=sentence_parts(summary, new_exposed(summary)),
        bad=bool(holes(summary)) or alarming(summary),
        bold=_bold(summary, first),
        lead=_lead(summary),
        chips=tuple(_chips(summary)),
        notes=tuple(_notes(summary)),
    )


def _bold(summary: Summary, first: tuple[FirstChange, ...]) -> str:
    closing = [step for step in first if step.number and "close" in step.words]
    if not closing or not summary.verdicts[Verdict.EXPOSED]:
        grave = summary.findings[Severity.CRITICAL] + summary.findings[Severity.HIGH]
        return f"{counted(grave, 'finding')} {'is' if grave == 1 else 'are'} critical or high." if grave else ""
    closed = counted(sum(step.number for step in closing), "object")
    return f"{counted(len(closing), 'change')} below {'closes' if len(closing) == 1 else 'close'} {closed}."


def _lead(summary: Summary) -> str:
    coverage = summary.coverage
    if not coverage.listed:
        return ""
    known = "All" if summary.complete else "The listing did not reach its end. The"
    parts = [f"{known} {counted(coverage.listed, 'listed object')} are accounted for"]
    if coverage.listed == 1:
        parts = ["The one listed object is accounted for" if summary.complete else "One object was listed"]
    if coverage.undecided:
        parts.append(f"{coverage.undecided:,} of them could not be checked")
    return "; ".join(parts) + "."


def _chips(summary: Summary) -> Iterator[Chip]:
    state, missed = completeness(summary).lower(), holes(summary, UNCHECKED)
    yield Chip(state, "warn") if missed else Chip(f"✓ {state}", "ok")
    yield from (Chip(one, "warn") for one in missed)
    if not missed:
        yield Chip("no hole" if not accepted(summary) else "no hole but accepted ones", "ok")
    if summary.target.versions:
        yield Chip("all versions")
    yield Chip("run", code=summary.run)


def _notes(summary: Summary) -> list[str]:
    """Return sentences below the headline, safe to print: of accepted holes, of a range of keys."""
    known = accepted(summary, UNCHECKED)
    notes = [f"Holes accepted in the configuration: {'; '.join(known)}."] if known else []
    target = summary.target
    for word, key in (("after", target.start_after), ("up to", target.stop_at)):
        if key is not None:
            notes.append(f"Only keys {word} {visible(key)}.")
    if summary.resume is not None and summary.resume.reason:
        notes.append(f"It stopped: {visible(summary.resume.reason)}.")
    return notes
