"""Make the page of a verification: the outcomes of all objects, and examples of objects that need a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from auditor.model.digest import VerifyOutcome
from auditor.model.rollup import Sample
from auditor.model.version import VERSION
from auditor.reports import phrases
from auditor.reports.page.data import Chip, Headline, NumberCard, VerifyPage
from auditor.reports.page.pictures import Share, laid
from auditor.reports.page.signs import Sign
from auditor.text import counted, tallied, visible
from auditor.verify.outcome import Verified
from auditor.verify.summary import VerifySummary, meaning_of

_MOST: Final = 20
_BAD: Final = frozenset({VerifyOutcome.MISMATCH, VerifyOutcome.MISSING, VerifyOutcome.LOST})
_COLOURS: Final = {
    VerifyOutcome.MATCH: ("intended", "✓"),
    VerifyOutcome.MISMATCH: ("exposed", "✱"),
    VerifyOutcome.MISSING: ("exposed", "●"),
    VerifyOutcome.LOST: ("exposed", "●"),
    VerifyOutcome.UNREADABLE: ("unknown", "?"),
    VerifyOutcome.LEDGER_FAULT: ("unknown", "?"),
    VerifyOutcome.CHANGED: ("masked", "◐"),
    VerifyOutcome.ACKNOWLEDGED: ("shared", "◆"),
    VerifyOutcome.DELETED: ("vanished", "–"),
    VerifyOutcome.RETIRED: ("vanished", "–"),
}
_FIX: Final[Mapping[VerifyOutcome, str]] = {
    VerifyOutcome.MISMATCH: "Keep the object as it is: it is evidence. Restore a copy under another key, and compare.",
    VerifyOutcome.MISSING: "Restore it, or record that it is no longer expected: `auditor digests retire`.",
    VerifyOutcome.LOST: "Restore the earlier bytes from a copy; turn on versioning, which keeps them.",
    VerifyOutcome.UNREADABLE: "Let the auditor read it (s3:GetObject, kms:Decrypt), and verify again.",
    VerifyOutcome.LEDGER_FAULT: "Run `auditor ledger --check`, and restore the ledger from a copy.",
    VerifyOutcome.CHANGED: "If nobody wrote it, look at its history: `auditor ledger s3://BUCKET/KEY`.",
}
"""The next step of a person, for each outcome of which the page names example objects."""


class Examples:
    """Keeps the first objects of each outcome in _FIX, for the page."""

    def __init__(self) -> None:
        self._kept: dict[VerifyOutcome, list[Sample]] = {outcome: [] for outcome in _FIX}

    def add(self, verified: Verified) -> None:
        kept = self._kept.get(verified.outcome)
        if kept is not None and len(kept) < _MOST:
            kept.append(Sample(verified.key, verified.version_id))

    def of(self, outcome: VerifyOutcome) -> tuple[Sample, ...]:
        return tuple(self._kept[outcome])


def verify_page(summary: VerifySummary, examples: Examples, *, part: bool = False) -> str:
    """Return the page as HTML.

    part: True if earlier invocations of a function did a part of the work. The examples are then of the last invocation
    alone.
    """
    from auditor.reports.page.render import render  # imports Jinja

    return render("verify.html", page_content(summary, examples, part=part))


def page_content(summary: VerifySummary, examples: Examples, *, part: bool = False) -> VerifyPage:
    """Return the content of the page; the parameters are those of verify_page()."""
    shares = [
        Share(_sign(outcome), summary.outcomes[outcome]) for outcome in VerifyOutcome if summary.outcomes[outcome]
    ]
    return VerifyPage(
        title=f"Verification of {visible(summary.target.uri)}",
        headline=_headline(summary),
        cards=tuple(_cards(summary)),
        parts=tuple(shares),
        bar=laid(shares),
        total=summary.listed + summary.ledger_only,
        groups=tuple(_group(summary, outcome, examples) for outcome in _FIX if summary.outcomes[outcome]),
        note="The examples are of the last invocation alone; the lines of all are in combined-*.jsonl.gz."
        if part
        else "",
        holes=summary.holes,
        accepted=tallied(summary.accepted),
        numbers=tuple(_numbers(summary)),
        footer=f"auditor {VERSION} · engine {summary.engine}",
    )


def _sign(outcome: VerifyOutcome) -> Sign:
    name, mark = _COLOURS.get(outcome, ("private", "○"))
    return Sign(name, outcome.value.replace("_", " "), mark, meaning_of(outcome))


def _headline(summary: VerifySummary) -> Headline:
    bad = sum(summary.outcomes[outcome] for outcome in _BAD)
    moment = phrases.began(summary.run)
    cut = "" if summary.complete else "Not complete. "
    sound = "No object that was read is damaged, and none is missing" if summary.read.objects else "No object was read"
    chips = [Chip("✓ complete", "ok") if summary.complete else Chip("not complete", "warn")]
    chips += [Chip("no hole", "ok")] if not summary.holes else [Chip(counted(len(summary.holes), "hole"), "warn")]
    chips += [Chip(phrases.duration(summary.seconds)), Chip("run", code=summary.run)]
    return Headline(
        kicker="Verification of",
        target=summary.target.uri,
        when=phrases.long_date(moment) if moment else "",
        title=(f"{cut}Damaged, missing or lost: ", counted(bad, "object"), ".") if bad else (f"{cut}{sound}", "", "."),
        bad=bool(bad or summary.holes),
        bold=f"{counted(summary.read.objects, 'object')} of {phrases.size(summary.read.bytes)} were read again.",
        lead=f"{counted(summary.listed, 'object')} listed, {summary.ledger_only:,} only in the ledger.",
        chips=tuple(chips),
        notes=tuple(f"Hole: {hole}." for hole in summary.holes),
    )


def _cards(summary: VerifySummary) -> Iterable[NumberCard]:
    for outcome in (VerifyOutcome.MATCH, VerifyOutcome.MISMATCH, VerifyOutcome.MISSING, VerifyOutcome.UNREADABLE):
        yield NumberCard(
            _sign(outcome), summary.outcomes[outcome], f"of {summary.listed + summary.ledger_only:,} objects"
        )
    not_due = summary.outcomes[VerifyOutcome.NOT_DUE]
    yield NumberCard(_sign(VerifyOutcome.NOT_DUE), not_due, f"due: {summary.due}")


def _group(
    summary: VerifySummary, outcome: VerifyOutcome, examples: Examples
) -> tuple[Sign, int, str, Sequence[Sample], str]:
    count, samples = summary.outcomes[outcome], examples.of(outcome)
    command = ""
    if count > len(samples) and "://" not in summary.out:
        chosen = phrases.shell_line(f'select(.outcome == "{outcome.value}") | .key')
        command = f"{phrases.shell_line('zcat', str(Path(summary.out).absolute()))}/combined-*.gz | jq -ac {chosen}"
    return _sign(outcome), count, _FIX[outcome], samples, command


def _numbers(summary: VerifySummary) -> Iterable[tuple[str, str]]:
    yield "Due", summary.due
    yield "Read", f"{counted(summary.read.objects, 'object')}, {phrases.size(summary.read.bytes)}"
    for item in summary.unreadable:
        yield f"Unreadable: {item.code}", counted(item.count, "object")
    for name, left in summary.left_for_cost.items():
        yield f"Left for cost: {name}", f"{counted(left.objects, 'object')}, {phrases.size(left.bytes)}"
    if summary.accepted:
        yield "Accepted in the configuration", tallied(summary.accepted)
    if summary.late.objects:
        yield "Read later than scheduled", counted(summary.late.objects, "object")
    yield "Recorded as new evidence", counted(summary.recorded, "object")
    if summary.healed:
        yield "Damaged rows of the ledger rewritten", f"{summary.healed:,}"
    if summary.unnoted:
        yield "Lines not written to the ledger", f"{summary.unnoted:,}"
    yield "Delete markers", f"{summary.delete_markers:,}"
