"""The summary of a verification, its exit code, and its lines for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from auditor.model.json_text import plain
from auditor.model.summary import Amount, Resume
from auditor.model.target import Target
from auditor.text import counted, harmless, visible
from auditor.verify.due import DAY
from auditor.verify.outcome import FINDINGS, SIGNS, VerifyOutcome
from auditor.verify.tally import VerifyTally

_WORDS: Final[Mapping[VerifyOutcome, str]] = {
    VerifyOutcome.MATCH: "match: read, and the bytes are what they were",
    VerifyOutcome.MISMATCH: "MISMATCH: the bytes are not those that were recorded or expected",
    VerifyOutcome.CHANGED: "changed: another version or ETag than the ledger's last",
    VerifyOutcome.MISSING: "MISSING: in the ledger, not in the bucket, and no notification said that it was deleted",
    VerifyOutcome.DELETED: "deleted, as a notification said",
    VerifyOutcome.NEW: "new: the ledger has no digest of it",
    VerifyOutcome.UNREADABLE: "UNREADABLE",
    VerifyOutcome.ARCHIVED: "archived: to be restored before they can be read",
    VerifyOutcome.IN_FLIGHT: "in flight: written so lately that the ledger may not know yet",
    VerifyOutcome.NOT_DUE: "not due in this run",
    VerifyOutcome.LEFT_FOR_COST: "left, for reading them costs (--accept-cost)",
}

_UNKNOWN: Final = (VerifyOutcome.NEW, VerifyOutcome.IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class UnreadableCount:
    """The number of objects that are unreadable with this error code."""

    code: str
    count: int


@dataclass(frozen=True, slots=True)
class LateReads:
    """A number of objects that were read too late. seconds: the most by which one of them was."""

    objects: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySummary:
    """All counts of a verification."""

    run: str
    """ID of the verification."""
    out: str
    """URI of its folder."""
    target: Target
    engine: str
    due: str
    """The schedule, in words."""
    complete: bool
    """True if the listing reached its end."""
    listed: int
    ledger_only: int
    """Number of objects that only the ledger has."""
    delete_markers: int
    outcomes: Mapping[str, int]
    """Number of objects by outcome; the sum is listed + ledger_only."""
    unreadable: tuple[UnreadableCount, ...]
    """The largest number first."""
    left_for_cost: Mapping[str, Amount]
    """Objects that were not read because reading them costs extra, by storage class."""
    read: Amount
    recorded: int
    """Number of objects whose digests were newly recorded in the ledger."""
    late: LateReads
    """The objects that were older than the schedule's limit when they were read."""
    seconds: float
    resume: Resume | None
    """None if the verification is complete."""

    def to_dict(self) -> dict[str, Any]:
        """Return the value of summary.json, in which the ID is called `verify`."""
        value = plain(self)
        resume = self.resume and {"reason": self.resume.reason, "start_after": self.resume.start_after}
        return {"verify": value.pop("run"), **value, "resume": resume}


def summarize(
    *,
    run: str,
    out: str,
    target: Target,
    engine: str,
    due: str,
    tally: VerifyTally,
    seconds: float,
    resume: Resume | None,
) -> VerifySummary:
    """Make the summary from the present counts; later counts do not change it. resume: None if all is verified."""
    return VerifySummary(
        run=run,
        out=out,
        target=target,
        engine=engine,
        due=due,
        complete=resume is None,
        listed=tally.listed,
        ledger_only=tally.ledger_only,
        delete_markers=tally.delete_markers,
        outcomes={outcome.value: tally.outcomes[outcome.value] for outcome in VerifyOutcome},
        unreadable=tuple(UnreadableCount(code, count) for code, count in tally.unreadable.most_common()),
        left_for_cost={name: Amount(*left) for name, left in sorted(tally.left.items())},
        read=Amount(tally.read_objects, tally.read_bytes),
        recorded=tally.recorded,
        late=LateReads(tally.late_objects, tally.late_seconds),
        seconds=round(seconds, 3),
        resume=resume,
    )


def exit_code(summary: VerifySummary) -> int:
    """Return 4 if the verification is not complete or an object is unreadable; else 3 if there is a finding; else 0."""
    if not summary.complete or summary.outcomes[VerifyOutcome.UNREADABLE]:
        return 4
    return 3 if any(summary.outcomes[outcome] for outcome in FINDINGS) else 0


def lines_of(summary: VerifySummary) -> Iterator[str]:
    """Yield the summary as lines for a person, with only the outcomes that occurred."""
    outcomes, read = summary.outcomes, summary.read
    uri = visible(f"s3://{summary.target.bucket}/{summary.target.prefix}")
    yield f"{uri}: {counted(summary.listed, 'object')} listed, {summary.ledger_only:,} in the ledger alone"
    for outcome, words in _WORDS.items():
        if outcomes[outcome]:
            yield f"{outcomes[outcome]:>14,}  {words}"
    for item in summary.unreadable[:10]:
        yield f"{'':16}{visible(item.code)}: {item.count:,}"
    for name, left in summary.left_for_cost.items():
        yield f"{'':16}{visible(name)}: {counted(left.objects, 'object')}, {counted(left.bytes, 'byte')}"
    yield f"read {counted(read.objects, 'object')}, {counted(read.bytes, 'byte')}; due: {summary.due}"
    if not any(outcomes[outcome] for outcome in VerifyOutcome if outcome not in _UNKNOWN):
        yield f"nothing was compared: {_why_nothing(sum(outcomes.values()))}"
    if summary.recorded:
        yield f"recorded as new evidence: {counted(summary.recorded, 'object')}"
    if summary.late.objects:
        yield (
            f"read later than the schedule says: {counted(summary.late.objects, 'object')}, at most"
            f" {summary.late.seconds / DAY:.1f} days; run more often, or give --every the time from one run to the next"
        )
    if summary.resume is not None:
        yield f"complete: NO ({harmless(summary.resume.reason or '')}); the rest was not looked at"
    yield f"report: {harmless(summary.out)}"


def _why_nothing(objects: int) -> str:
    if not objects:
        return "there is nothing; check the bucket and the prefix"
    return "the ledger knows none of these objects; check --ledger, or record their digests with `auditor hash`"


def printed(summary: VerifySummary, output: str) -> str:
    """Return the summary as a table or as JSON, with its line end."""
    if output == "json":
        return json.dumps(summary.to_dict()) + "\n"
    return "".join(f"{line}\n" for line in lines_of(summary))


_NAMED: Final = (*FINDINGS, VerifyOutcome.UNREADABLE)
_MOST: Final = 10


class LineSink(Protocol):
    """Takes the lines of the combined report."""

    def write(self, text: str, /) -> object: ...


class WorstObjects:
    """Keeps the first lines of mismatched, missing and unreadable objects. lines: takes every line, if it is given."""

    def __init__(self, lines: LineSink | None) -> None:
        self._lines = lines
        self._kept: dict[str, list[str]] = {SIGNS[outcome]: [] for outcome in _NAMED}

    def write(self, text: str, /) -> None:
        kept = self._kept.get(text[0])
        if kept is not None and len(kept) < _MOST:
            kept.append(text)
        if self._lines is not None:
            self._lines.write(text)

    def table(self, summary: VerifySummary) -> Iterator[str]:
        """Yield the kept lines with their line ends, mismatches first; nothing if no object is wrong."""
        shown = [text for kept in self._kept.values() for text in kept][:_MOST]
        for text in shown:
            yield f"{'':16}{text.replace(chr(9), ' version ')}"
        rest = sum(summary.outcomes[outcome] for outcome in _NAMED) - len(shown)
        if rest:
            yield f"{'':16}and {rest:,} more: see the report\n"
