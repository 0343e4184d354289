"""The tables of docs/scale.md that compare nights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from benchmarks.scale import bill, words
from benchmarks.scale.assumed import OPTIONS, cheaper, own, usual
from benchmarks.scale.bill import NIGHTS, total
from benchmarks.scale.find import advised, mapped, simulate
from benchmarks.scale.measured import Measured
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import Night, Pace, pace
from benchmarks.tables import table

SIZES: Final = tuple(10**power for power in range(6, 11))
SHOWN: Final = (10**6, 10**8, 10**10)
"""Sizes of the tables; the picture has all of SIZES."""
MEMORIES: Final = (128, 512, 1024, 1769, 3008)
_COLUMNS: Final = (
    bill.S3_LIST, bill.S3_CALLS, bill.S3_INVENTORY, bill.RUN_FOLDER, bill.LAMBDA, bill.STEP_FUNCTIONS,
)  # fmt: skip


def nights() -> Iterator[tuple[str, str, Night]]:
    """Yield the nights of the page with their sizes and modes."""
    for objects in SHOWN:
        for mode in Mode:
            yield words.power(objects), mode.value, usual(mode, objects)


def courses(found: Measured) -> str:
    """Calls and times, with one function and with a map."""
    columns = ("objects", "mode", "calls", "one function", "ranges at once", "time", "a night", "held back by")
    rows = []
    for size, way, night in nights():
        calls, alone = words.counted(night.s3_calls), pace(night, found)
        *ranges, limit = _over_ranges(night, found)
        dollars = words.dollars(advised(night, found).dollars)
        rows.append((size, way, calls, _chain(alone), *ranges, dollars, limit))
    return _aligned(columns, rows, numbers=range(2, 7))


def _chain(course: Pace) -> str:
    if course.too_long:
        return "never"
    return words.duration(course.seconds)


def _over_ranges(night: Night, found: Measured) -> tuple[str, ...]:
    wide = mapped(night, found)
    course = pace(wide, found)
    return f"{wide.at_once} of {wide.ranges}", words.duration(course.seconds), course.limit


def bills(found: Measured) -> str:
    """Dollars of 10^8 objects by service: with one function where that ends within an hour, else with a map."""
    rows = []
    for mode in Mode:
        best = advised(usual(mode), found)
        parts = [total(best.terms, (service,)) for service in _COLUMNS]
        rows.append((mode.value, *map(words.dollars, (*parts, best.dollars, best.dollars * NIGHTS))))
    return _aligned(("mode", *_COLUMNS, "a night", "a month"), rows, numbers=range(1, 9))


def settings(found: Measured) -> str:
    """Dollars of 10^9 mixed objects without calls on objects, by the settings that matter."""
    rows = []
    for name, night in cheaper():
        one = own(simulate(_best_of(night, found), found))
        changed = replace(night, changed=usual(Mode.MIXED).changed)
        calls = total(simulate(_best_of(changed, found), found).terms, (bill.S3_CALLS,))
        sums = (one.requests, one.functions, one.running, one.stored, one.running + one.stored, calls)
        rows.append((name, *map(words.dollars, sums)))
    columns = (
        "settings", "S3's requests and Inventory", "functions", "sum", "stored", "with what is stored",
        f"calls if {words.percent(usual(Mode.MIXED).changed)} changes a night",
    )  # fmt: skip
    return _aligned(columns, rows, numbers=range(1, 7))


def _best_of(night: Night, found: Measured) -> Night:
    return night if night.machine else mapped(night, found)


def options(found: Measured) -> str:
    """What a choice adds to a night of 10^8 objects, or takes from it."""
    rows = []
    for name, change in OPTIONS:
        cells = []
        for mode in Mode:
            more = advised(change(usual(mode)), found).dollars - advised(usual(mode), found).dollars
            cells.append(f"{'-' if more < 0 else '+'}{words.dollars(abs(more))}")
        rows.append((name, *cells))
    return _aligned(("if", *(mode.value for mode in Mode)), rows, numbers=range(1, 4))


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: range) -> str:
    """Return a table whose columns `numbers` are right-aligned: their numbers are words."""
    head, _, *lines = table(columns, rows).splitlines()
    rule = " | ".join("---:" if at in numbers else "---" for at in range(len(columns)))
    return "\n".join([head, f"| {rule} |", *lines])
