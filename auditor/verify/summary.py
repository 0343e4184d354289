"""The summary of a verification, its exit code, and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from auditor.text import counted, harmless, visible
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


def counts_of(tally: VerifyTally) -> dict[str, Any]:
    """The counted part of the summary; `outcomes` sums to listed + ledger_only."""
    return {
        "listed": tally.listed,
        "ledger_only": tally.ledger_only,
        "delete_markers": tally.delete_markers,
        "outcomes": {outcome.value: tally.outcomes[outcome.value] for outcome in VerifyOutcome},
        "unreadable": [{"code": code, "count": count} for code, count in tally.unreadable.most_common()],
        "left_for_cost": {name: {"objects": left[0], "bytes": left[1]} for name, left in sorted(tally.left.items())},
        "read": {"objects": tally.read_objects, "bytes": tally.read_bytes},
        "recorded": tally.recorded,
    }


def exit_code(summary: Mapping[str, Any]) -> int:
    """4: something could not be looked at; else 3: bytes are not what they were, or gone; else 0."""
    if not summary["complete"] or summary["outcomes"][VerifyOutcome.UNREADABLE.value]:
        return 4
    return 3 if any(summary["outcomes"][outcome.value] for outcome in FINDINGS) else 0


def lines_of(summary: Mapping[str, Any]) -> Iterator[str]:
    """For a person; only outcomes that there are."""
    target, outcomes = summary["target"], summary["outcomes"]
    uri = visible(f"s3://{target['bucket']}/{target['prefix']}")
    read = summary["read"]
    yield f"{uri}: {counted(summary['listed'], 'object')} listed, {summary['ledger_only']:,} in the ledger alone"
    for outcome, words in _WORDS.items():
        if outcomes[outcome.value]:
            yield f"{outcomes[outcome.value]:>14,}  {words}"
    for item in summary["unreadable"][:10]:
        yield f"{'':16}{visible(item['code'])}: {item['count']:,}"
    for name, left in summary["left_for_cost"].items():
        yield f"{'':16}{visible(name)}: {counted(left['objects'], 'object')}, {counted(left['bytes'], 'byte')}"
    yield f"read {counted(read['objects'], 'object')}, {counted(read['bytes'], 'byte')}; due: {summary['due']}"
    if not any(outcomes[outcome.value] for outcome in VerifyOutcome if outcome not in _UNKNOWN):
        yield f"nothing was compared: {_why_nothing(sum(outcomes.values()))}"
    if summary["recorded"]:
        yield f"recorded as new evidence: {counted(summary['recorded'], 'object')}"
    if not summary["complete"]:
        reason = summary["resume"]["reason"]
        yield f"complete: NO ({harmless(reason)}); the rest was not looked at"
    yield f"report: {harmless(summary['out'])}"


def _why_nothing(objects: int) -> str:
    if not objects:
        return "there is nothing; check the bucket and the prefix"
    return "the ledger knows none of these objects; check --ledger, or record their digests with `auditor hash`"


def printed(summary: Mapping[str, Any], output: str) -> str:
    """As a table or JSON, with its line end."""
    if output == "json":
        return json.dumps(summary) + "\n"
    return "".join(f"{line}\n" for line in lines_of(summary))


_NAMED: Final = (*FINDINGS, VerifyOutcome.UNREADABLE)
_MOST: Final = 10


class LineSink(Protocol):
    """Takes the combined report, a line at a time."""

    def write(self, text: str, /) -> object: ...


class WorstObjects:
    """Keeps the first lines of each kind that it names, and hands every line on. lines: None: nobody takes them."""

    def __init__(self, lines: LineSink | None) -> None:
        self._lines = lines
        self._kept: dict[str, list[str]] = {SIGNS[outcome]: [] for outcome in _NAMED}

    def write(self, text: str, /) -> None:
        kept = self._kept.get(text[0])
        if kept is not None and len(kept) < _MOST:
            kept.append(text)
        if self._lines is not None:
            self._lines.write(text)

    def table(self, summary: Mapping[str, Any]) -> Iterator[str]:
        """LineSink with their ends, the mismatches first; nothing where nothing is wrong."""
        shown = [text for kept in self._kept.values() for text in kept][:_MOST]
        for text in shown:
            yield f"{'':16}{text.replace(chr(9), ' version ')}"
        rest = sum(summary["outcomes"][outcome.value] for outcome in _NAMED) - len(shown)
        if rest:
            yield f"{'':16}and {rest:,} more: see the report\n"
