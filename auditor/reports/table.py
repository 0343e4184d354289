"""The summary as a table on a terminal: plain text, at most 100 columns, safe to print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from auditor.models import Severity
from auditor.reports.summary import exit_code, holes
from auditor.text import harmless, shorten, visible, width

COLUMNS: Final = 100
_LABEL: Final = 16
_MOST: Final = 10
_MEANING: Final = {
    0: "complete, no hole, nothing at or above the severity that fails",
    3: "findings at or above the severity that fails",
    4: "a hole: not everything was seen",
}


def render(summary: Mapping[str, Any], fail_on: Severity | None = Severity.HIGH) -> str:
    """All lines, the last with its line end. fail_on: as given to exit_code."""
    sections = (
        _head(summary),
        _counts("Coverage", summary["coverage"]),
        _counts("Verdicts", summary["verdicts"]),
        _counts("Findings", summary["findings"]),
        _pairs("By rule", summary.get("rules", {}).items()),
        _pairs(
            "Undecided", ((f"{item['action']} {item['code']}", item["count"]) for item in summary.get("unread", ()))
        ),
        _listed(
            "Rules undecided", (visible(f"{r['rule']}: {r['action']} {r['code']}") for r in summary["rules_undecided"])
        ),
        _hashing(summary["hashing"]),
        _counts("Calls", summary["calls"]),
        _listed("Not looked at", summary["not_looked_at"]),
        _foot(summary, fail_on),
    )
    return "".join(f"{line}\n" for section in sections for line in section)


def _head(summary: Mapping[str, Any]) -> Iterator[str]:
    target = summary["target"]
    what = f"s3://{target['bucket']}/{visible(target['prefix'] or '')}"
    yield from _listed("Audited", [f"{what} (all versions)" if target["versions"] else what])
    if target["start_after"] is not None or target["stop_at"] is not None:
        bounds = [("after", target["start_after"]), ("up to", target["stop_at"])]
        yield from _listed("Keys", (f"{word} {visible(key)}" for word, key in bounds if key is not None))
    seconds = summary["seconds"]
    yield from _listed("Run", [f"{summary['run']}, engine {summary['engine']}, {seconds:,} s"])
    yield from _listed("Complete", ["yes" if summary["complete"] else "NO"])


def _foot(summary: Mapping[str, Any], fail_on: Severity | None) -> Iterator[str]:
    accepted = summary.get("accepted") or {}
    if any(accepted.values()):
        yield from _listed("Accepted", [f"{accepted['undecided']:,} objects, {accepted['rules']} rules undecided"])
    yield from _listed("Holes", holes(summary) or ["none"])
    yield _line("Run folder", visible(summary["out"]))  # never cut: it is there to be copied
    code = exit_code(summary, fail_on)
    yield from _listed("Exit", [f"{code}: {_MEANING[code]}"])


def _hashing(hashing: Mapping[str, Any] | None) -> Iterator[str]:
    if hashing is None:
        yield from _listed("Hashing", ["no ledger given"])
        return
    counts = {name: number for name, number in hashing.items() if name != "algorithms"}
    yield from _counts(f"Hashing {', '.join(hashing['algorithms'])}", counts)


def _counts(label: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Numbers with short names, as many to a line as fit."""
    cells = [f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items()]
    yield from _wrapped(label, cells)


def _pairs(label: str, pairs: Iterable[tuple[str, int]]) -> Iterator[str]:
    """The first few of many."""
    cells = [f"{visible(name)} {number:,}" for name, number in pairs]
    more = len(cells) - _MOST
    yield from _wrapped(label, [*cells[:_MOST], f"and {more} more"] if more > 0 else cells)


def _wrapped(label: str, cells: list[str]) -> Iterator[str]:
    line = ""
    for text in cells:
        cell = shorten(text, COLUMNS - _LABEL)
        if line and _LABEL + width(f"{line}   {cell}") > COLUMNS:
            yield _line(label, line)
            label, line = "", cell
        else:
            line = f"{line}   {cell}" if line else cell
    if line:
        yield _line(label, line)


def _listed(label: str, texts: Iterable[str]) -> Iterator[str]:
    """Each begins a line, and goes on below where it is long."""
    for text in texts:
        for line in _fold(harmless(text), COLUMNS - _LABEL):
            yield _line(label, line)
            label = ""


def _fold(text: str, columns: int) -> Iterator[str]:
    """The text in lines of at most that many columns, broken at spaces where there are any."""
    indent = ""
    while width(indent + text) > columns:
        fits = len(shorten(text, columns - len(indent))) - 1
        space = text.rfind(" ", 1, fits + 1)
        cut = space if space > 0 else fits
        yield indent + text[:cut]
        text = text[cut:].removeprefix(" ")
        indent = "  "
    yield indent + text


def _line(label: str, text: str) -> str:
    if len(label) >= _LABEL:
        return f"{label}\n{' ' * _LABEL}{text}"
    return f"{label:<{_LABEL}}{text}"
