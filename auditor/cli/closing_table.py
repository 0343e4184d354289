"""The closing table of an audit of several targets: one line for each target, and their sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.text import counted, shorten, visible

_STATES: Final = {0: "passed", 1: "FAILED", 3: "FINDINGS", 4: "HOLE"}
_STATE: Final = 9
_COUNT: Final = 11
LEAST_NAME: Final = 20


class TargetResult(Struct, frozen=True):
    """The end of one target. summary: None if the target failed. code: its exit code."""

    target: Target
    summary: Summary | None
    code: int


def closing_table(results: Sequence[TargetResult], columns: int) -> str:
    """Return the table for a terminal of that width. A target's long name is cut."""
    room = max(LEAST_NAME, columns - _STATE - 3 * _COUNT - 2)
    lines = [_line("", ("objects", "exposed", "undecided"), "target")]
    sums: Counter[str] = Counter()
    for one in results:
        counts = _counts(one.summary)
        sums.update(counts)
        cells = tuple(f"{number:,}" for number in counts.values()) if counts else ("-", "-", "-")
        lines.append(_line(_STATES[one.code], cells, shorten(visible(one.target.uri), room)))
    states = Counter(_STATES[one.code] for one in results)
    words = ", ".join(f"{states[state]:,} {state}" for state in _STATES.values() if states[state])
    lines.append(
        f"{counted(len(results), 'target')}: {words};"
        f" {counted(sums['listed'], 'object')}, {sums['exposed']:,} exposed, {sums['undecided']:,} undecided"
    )
    return "".join(f"{line}\n" for line in lines)


def _counts(summary: Summary | None) -> dict[str, int]:
    if summary is None:
        return {}
    coverage = summary.coverage
    return {"listed": coverage.listed, "exposed": summary.verdicts["exposed"], "undecided": coverage.undecided}


def _line(state: str, cells: tuple[str, ...], name: str) -> str:
    return f"{state:<{_STATE}}{''.join(f'{cell:>{_COUNT}}' for cell in cells)}  {name}"
