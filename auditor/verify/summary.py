"""Make the summary of a verification, its exit code, and its lines for a terminal."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from auditor.model.digest import FAIL_ON, VerifyOutcome
from auditor.model.json_codec import document
from auditor.model.summary import Amount, Resume
from auditor.model.target import Target
from auditor.reports.text_table import Column, text_table
from auditor.text import counted, harmless, healed_rows, tallied, visible
from auditor.verify.due import DAY
from auditor.verify.outcome import SIGNS
from auditor.verify.tally import VerifyTally

_WORDS: Final[Mapping[VerifyOutcome, str]] = {
    VerifyOutcome.MATCH: "match: read, and the bytes are what they were",
    VerifyOutcome.MISMATCH: "MISMATCH: the bytes differ from those that were recorded or expected",
    VerifyOutcome.CHANGED: "changed: not the version or ETag that the ledger recorded last",
    VerifyOutcome.MISSING: "MISSING: in the ledger, not in the bucket, and no notification reported a deletion",
    VerifyOutcome.LOST: "LOST: recorded bytes were overwritten, and the bucket keeps no versions (reported once)",
    VerifyOutcome.DELETED: "deleted, as a notification reported",
    VerifyOutcome.RETIRED: "retired: gone, and no longer expected (`auditor digests retire`)",
    VerifyOutcome.ACKNOWLEDGED: "acknowledged: findings that a person has looked into (`auditor digests acknowledge`)",
    VerifyOutcome.NEW: "new: the ledger has no digest of it",
    VerifyOutcome.UNREADABLE: "UNREADABLE",
    VerifyOutcome.LEDGER_FAULT: "LEDGER FAULT: the ledger's entry is damaged, so nothing can be said about the object;"
    " run `auditor ledger --check`, then restore the ledger from a copy",
    VerifyOutcome.ARCHIVED: "archived: must be restored before it can be read",
    VerifyOutcome.IN_FLIGHT: "in flight: written so recently that the ledger may not know it yet",
    VerifyOutcome.NOT_DUE: "not due in this run",
    VerifyOutcome.LEFT_FOR_COST: "left, because reading them costs money (--accept-cost)",
}

_SEEN: Final = (VerifyOutcome.MATCH, VerifyOutcome.MISMATCH, VerifyOutcome.ACKNOWLEDGED, VerifyOutcome.NOT_DUE)
"""Outcomes of listed objects that the ledger knows, and that the run has read, or has found not to be due."""
_GONE: Final = (VerifyOutcome.MISSING, VerifyOutcome.DELETED, VerifyOutcome.RETIRED, VerifyOutcome.ACKNOWLEDGED)

NOTHING_COMPARED: Final = ("Verify", "NothingCompared")
"""Action and code of the hole that a run has if it compares nothing. auditor.toml can accept the hole by these."""


class UnreadableCount(Struct, frozen=True):
    """An error code, and the number of objects that could not be read because of it."""

    code: str
    count: int


class LateReads(Struct, frozen=True):
    """The number of objects that were read later than the schedule allows, and the longest delay in seconds."""

    objects: int
    seconds: int


class VerifySummary(Struct, frozen=True, kw_only=True):
    """The whole content of a verification's summary.json."""

    run: str
    """ID of the verification."""
    out: str
    """URI of the folder that the verification has written."""
    target: Target
    engine: str
    due: str
    """The schedule of reads, in words."""
    complete: bool
    """True if the listing and the ledger were read to their ends."""
    listed: int
    ledger_only: int
    """Number of objects that the ledger has and the listing lacks."""
    delete_markers: int
    outcomes: Mapping[str, int]
    """Number of objects by outcome; the sum is listed + ledger_only."""
    unreadable: tuple[UnreadableCount, ...]
    """Number of unreadable objects by error code, the largest number first."""
    left_for_cost: Mapping[str, Amount]
    """Objects and bytes that were not read because reading them costs extra, by storage class."""
    read: Amount
    recorded: int
    """Number of objects whose digests are new in the ledger."""
    healed: int = 0
    """Number of damaged rows of the ledger that were written anew, because the keys' histories had them."""
    unnoted: int
    """Number of history lines that are missing in the ledger, because the ledger is read-only or did not answer before
    the end."""
    late: LateReads
    """The objects that were read when their age exceeded the schedule's limit."""
    accepted: Mapping[str, int]
    """Number of objects that were due and not read, and that auditor.toml accepts, by reason."""
    holes: tuple[str, ...]
    """The holes of the verification, in words: it did not end, due objects were not read, or nothing was compared.

    Holes that auditor.toml accepts are left out."""
    seconds: float
    resume: Resume | None
    """Where to continue the verification, and why it stopped; None if it is complete."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of summary.json. The field `run` is called `verify` there."""
        value = document(self)
        resume = self.resume and {"reason": self.resume.reason, "start_after": self.resume.start_after}
        return {"format": value.pop("format"), "verify": value.pop("run"), **value, "resume": resume}


def holes_in(tally: VerifyTally, resume: Resume | None, empty_accepted: bool) -> Iterator[str]:
    """Yield the holes of a verification, in words.

    resume: where to continue; None if the verification is complete. empty_accepted: True if nothing need be compared.
    """
    if resume is not None:
        yield "the run did not finish"
    if unread := tally.unread - tally.accepted:
        yield f"{counted(unread.total(), 'object')} due and not read ({tallied(unread)})"
    seen = _SEEN if tally.listed else _GONE
    compared = tally.read_objects or any(tally.outcomes[outcome] for outcome in seen)
    explained = 0 < tally.outcomes.total() == tally.unread.total()
    if resume is None and not (compared or explained or empty_accepted):
        yield f"nothing was compared: {_why_nothing(tally)}"


def _why_nothing(tally: VerifyTally) -> str:
    if not tally.outcomes.total():
        return "nothing is there: check the bucket and the prefix, or pass --allow-empty"
    listed = {name: count for name, count in tally.outcomes.items() if name not in (*_GONE, VerifyOutcome.LOST)}
    return (
        f"the ledger knows none of these objects ({tallied(listed)}); check --ledger, or record their digests with"
        " `auditor hash`"
    )


def meaning_of(outcome: VerifyOutcome) -> str:
    """Return the meaning of an outcome as a phrase that begins with a small letter."""
    return _WORDS[outcome].partition(": ")[2] or _WORDS[outcome].lower()


def exit_code(summary: VerifySummary, fail_on: Collection[VerifyOutcome] = FAIL_ON) -> int:
    """Return the exit code: 4 if the summary has a hole, such as a due object that was not read; else 3 if an outcome
    in `fail_on` occurred; else 0.
    """
    if summary.holes:
        return 4
    return 3 if any(summary.outcomes[outcome] for outcome in fail_on) else 0


def lines_of(summary: VerifySummary) -> Iterator[str]:
    """Yield the summary as lines for a person. Outcomes that did not occur are left out."""
    outcomes, read = summary.outcomes, summary.read
    uri = visible(f"s3://{summary.target.bucket}/{summary.target.prefix}")
    yield f"{uri}: {counted(summary.listed, 'object')} listed, {summary.ledger_only:,} only in the ledger"
    rows = [(f"{outcomes[outcome]:,}", words) for outcome, words in _WORDS.items() if outcomes[outcome]]
    rows += [("", f"{visible(item.code)}: {item.count:,}") for item in summary.unreadable[:10]]
    for name, left in summary.left_for_cost.items():
        rows.append(("", f"{visible(name)}: {counted(left.objects, 'object')}, {counted(left.bytes, 'byte')}"))
    yield from text_table([Column(right=True), Column()], rows, indent="  ")
    yield f"read {counted(read.objects, 'object')}, {counted(read.bytes, 'byte')}; due: {summary.due}"
    if summary.holes:
        yield f"HOLE: {'; '.join(summary.holes)}"
    if summary.accepted:
        yield f"accepted in the configuration: {tallied(summary.accepted)}"
    yield from _of_ledger(summary)
    if summary.late.objects:
        yield (
            f"read later than scheduled: {counted(summary.late.objects, 'object')}, at most"
            f" {summary.late.seconds / DAY:.1f} days; run more often, or set --every to the time between two runs"
        )
    if summary.resume is not None:
        yield f"complete: NO ({harmless(summary.resume.reason or '')}); the rest was not looked at"
    yield f"report: {harmless(summary.out)}"


def _of_ledger(summary: VerifySummary) -> Iterator[str]:
    if summary.recorded:
        yield f"recorded as new evidence: {counted(summary.recorded, 'object')}"
    yield from healed_rows(summary.healed)
    if summary.unnoted:
        lines = counted(summary.unnoted, "line")
        yield f"not written to the ledger, which refused or did not answer: {lines} of the history"


def printed(summary: VerifySummary, output: str) -> str:
    """Return the summary as text to print.

    output: "json", or "table" for lines that a person reads.
    """
    if output == "json":
        return json.dumps(summary.to_dict()) + "\n"
    return "".join(f"{line}\n" for line in lines_of(summary))


_MOST: Final = 10


class LineSink(Protocol):
    """A stream that the lines of the combined report are written to."""

    def write(self, text: str, /) -> object: ...


class WorstObjects:
    """A stream for the combined report. It keeps some lines on objects that make the run fail, for the terminal.

    lines: the stream that gets every line; None if nobody wants the report.
    """

    def __init__(self, lines: LineSink | None, fail_on: Collection[VerifyOutcome] = FAIL_ON) -> None:
        self._lines = lines
        self._named = (*fail_on, VerifyOutcome.UNREADABLE, VerifyOutcome.LEDGER_FAULT)
        self._kept: dict[str, list[str]] = {SIGNS[outcome]: [] for outcome in self._named}

    def write(self, text: str, /) -> None:
        kept = self._kept.get(text[0])
        if kept is not None and len(kept) < _MOST:
            kept.append(text)
        if self._lines is not None:
            self._lines.write(text)

    def table(self, summary: VerifySummary) -> Iterator[str]:
        """Yield some of the kept lines with newlines, grouped by outcome. A last line has the number of such objects
        that are not shown.
        """
        shown = [text for kept in self._kept.values() for text in kept][:_MOST]
        for text in shown:
            yield f"  {text.replace(chr(9), ' version ')}"
        rest = sum(summary.outcomes[outcome] for outcome in self._named) - len(shown)
        if rest:
            yield f"  and {rest:,} more: see the report\n"
