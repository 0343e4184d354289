"""Make the headline of an audit's page: one sentence, what follows from it, and a few short facts."""

from __future__ import annotations

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.summary import Summary
from auditor.reports import words
from auditor.reports.page.data import Chip, FirstChange, Headline
from auditor.reports.summary import accepted, alarming, completeness, failed_of, holes
from auditor.reports.verdict_sentence import sentence_parts
from auditor.text import counted, visible


def headline(summary: Summary, intended: int, new: int | None, first: tuple[FirstChange, ...]) -> Headline:
    """Return the headline. intended: number of exposed objects that an exception covers. new: number of exposed objects
    that the last run did not have; None if that is not known.
    """
    moment = words.began(summary.run)
    before, emphasis, after = sentence_parts(summary, intended, new)
    return Headline(
        kicker="Audit of",
        target=f"s3://{summary.target.bucket}/{summary.target.prefix}",
        when=words.long_date(moment) if moment else "",
        title=(before, after),
        emphasis=emphasis,
        bad=bool(holes(summary)) or alarming(summary),
        bold=_bold(summary, first),
        lead=_lead(summary),
        chips=_chips(summary),
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
        parts.append(f"{coverage.undecided:,} of them could not be read in full")
    return "; ".join(parts) + "."


def _chips(summary: Summary) -> tuple[Chip, ...]:
    state = completeness(summary).lower()
    chips = [Chip(state, "warn") if holes(summary) else Chip(f"✓ {state}", "ok")]
    if summary.coverage.undecided:
        chips.append(Chip(f"{summary.coverage.undecided:,} undecided", "warn"))
    if summary.rules_undecided:
        chips.append(Chip(f"{counted(len(summary.rules_undecided), 'rule')} undecided", "warn"))
    if failed := failed_of(summary):
        chips.append(Chip(f"{counted(sum(failed.values()), 'object')} not hashed", "warn"))
    if not holes(summary):
        chips.append(Chip("no hole" if not accepted(summary) else "no hole but accepted ones", "ok"))
    if summary.target.versions:
        chips.append(Chip("all versions"))
    return (*chips, Chip("run", code=summary.run))


def _notes(summary: Summary) -> list[str]:
    """Return sentences below the headline, safe to print: of holes, of accepted holes, of a range of keys."""
    notes = []
    if missed := holes(summary):
        notes.append(f"Holes: {'; '.join(missed)}.")
    if known := accepted(summary):
        notes.append(f"Holes accepted in the configuration: {'; '.join(known)}.")
    target = summary.target
    for word, key in (("after", target.start_after), ("up to", target.stop_at)):
        if key is not None:
            notes.append(f"Only keys {word} {visible(key)}.")
    if summary.resume is not None and summary.resume.reason:
        notes.append(f"It stopped: {visible(summary.resume.reason)}.")
    return notes
