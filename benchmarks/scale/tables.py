"""The tables of docs/scale.md that compare nights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from benchmarks.scale import bill, words
from benchmarks.scale.assumed import OPTIONS, cheaper, on_a_machine, own, usual
from benchmarks.scale.bill import NIGHTS, Term, total
from benchmarks.scale.find import advised, mapped, simulate
from benchmarks.scale.measured import Measured
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import LONGEST_CHAIN, Night, Pace, pace
from benchmarks.tables import table

SIZES: Final = tuple(10**power for power in range(6, 11))
RATES: Final = (500.0, 2000.0, 5500.0, 22_000.0, 88_000.0)
PARTITION: Final = 5500
"""GET and HEAD requests a second that S3 answers for a partitioned prefix, at least (S3 User Guide, "Best practices
design patterns: optimizing Amazon S3 performance")."""
MEMORIES: Final = (128, 512, 1024, 1769, 3008)
AT_ONCE: Final = (1, 2, 4, 10, 16, 32, 64)
CLASSES: Final = ("STANDARD", "STANDARD_IA", "GLACIER_IR")
CHANGED: Final = (0.001, 0.01, 0.05)
DUE: Final = ((2.0, 8.0), (8.0, 31.0), (31.0, 91.0))
"""Limits of `keep` in nights, of an ACL and of a HEAD."""
_COLUMNS: Final = (
    bill.S3_LIST, bill.S3_CALLS, bill.S3_INVENTORY, bill.RUN_FOLDER, bill.LAMBDA, bill.STEP_FUNCTIONS,
)  # fmt: skip


def nights() -> Iterator[tuple[str, str, Night]]:
    """Yield the nights of the page with their sizes and modes."""
    for objects in SIZES:
        for mode in Mode:
            yield words.power(objects), mode.value, usual(mode, objects)


def courses(found: Measured) -> str:
    """Calls, hops, ranges and times, with one function and with a map."""
    columns = (
        "objects", "mode", "calls on the bucket", "one function: hops", "time",
        "map: at once", "invocations", "time", "calls a second", "held back by",
    )  # fmt: skip
    rows = []
    for size, way, night in nights():
        calls, alone = words.counted(night.s3_calls), pace(night, found)
        rows.append((size, way, calls, *_chain(alone), *_over_ranges(night, found)))
    return _aligned(columns, rows, numbers=range(2, 9))


def _chain(course: Pace) -> tuple[str, str]:
    if course.too_long:
        return "never" if math.isinf(course.seconds) else f"over {LONGEST_CHAIN}", "-"
    return f"{course.hops:,}", words.duration(course.seconds)


def _over_ranges(night: Night, found: Measured) -> tuple[str, ...]:
    wide = mapped(night, found)
    course = pace(wide, found)
    times = (words.duration(course.seconds), f"{course.calls_a_second:,.0f}")
    return (f"{wide.at_once} of {wide.ranges}", f"{course.invocations:,}", *times, course.limit)


def bills(found: Measured) -> str:
    """Dollars by service: with one function where that ends within an hour, else with a map."""
    rows = []
    for size, way, night in nights():
        best = advised(night, found)
        parts = [total(best.terms, (service,)) for service in _COLUMNS]
        rows.append((size, way, *map(words.dollars, (*parts, best.dollars, best.dollars * NIGHTS))))
    return _aligned(("objects", "mode", *_COLUMNS, "a night", "a month"), rows, numbers=range(2, 10))


def billion(found: Measured) -> str:
    """Every term of 10^9 mixed objects."""
    terms = simulate(on_a_machine(), found).terms
    rows = [
        (one.service, one.what, words.counted(one.number), _price(one), words.dollars(one.dollars)) for one in terms
    ]
    last = ("", "", "", "", words.dollars(total(terms)))
    return _aligned(("service", "for", "number", "at", "dollars"), [*rows, last], numbers=range(2, 5))


def _price(term: Term) -> str:
    million = term.dollars / term.number * 10**6
    return f"${million:,.4g} a million" if million < 10_000 else f"${million / 10**6:,.3g} each"


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


def ceilings(found: Measured) -> str:
    """Times by the ceiling of calls, with the number of ranges at once, and the partitions that it takes."""
    rows: list[Sequence[str]] = []
    for size, way, night in nights():
        cells = []
        for rate in RATES:
            fast = mapped(replace(night, max_rate=rate), found)
            at_once = f" ({fast.at_once})" if fast.ranges > 1 else ""
            cells.append(f"{words.duration(pace(fast, found).seconds)}{at_once}")
        rows.append((size, way, *cells))
    rows.append(("prefix partitions that the ceiling takes", "", *(str(math.ceil(rate / PARTITION)) for rate in RATES)))
    return _aligned(("objects", "mode", *(f"{rate:,.0f}/s" for rate in RATES)), rows, numbers=range(2, 7))


def memories(found: Measured) -> str:
    """Dollars of Lambda and times of 10^8 objects by the memory of the function."""
    rows = []
    for memory in MEMORIES:
        cells: list[str] = []
        for mode in Mode:
            best = simulate(mapped(replace(usual(mode), memory=memory), found), found)
            cells += [words.dollars(total(best.terms, (bill.LAMBDA,))), words.duration(best.course.seconds)]
        rows.append((f"{memory:,}", *cells))
    columns = ["MB", *(name for mode in Mode for name in (f"{mode.value}: Lambda", "time"))]
    return _aligned(columns, rows, numbers=range(7))


def widths(found: Measured) -> str:
    """Dollars of Lambda and times of 10^8 objects by the number of ranges at once."""
    rows = []
    for at_once in AT_ONCE:
        cells: list[str] = []
        for mode in Mode:
            wide = simulate(replace(mapped(usual(mode), found), at_once=at_once), found)
            cells += [words.dollars(total(wide.terms, (bill.LAMBDA,))), words.duration(wide.course.seconds)]
        rows.append((str(at_once), *cells))
    columns = ["at once", *(name for mode in Mode for name in (f"{mode.value}: Lambda", "time"))]
    return _aligned(columns, rows, numbers=range(7))


def classes(found: Measured) -> str:
    """Dollars a night of 10^8 objects by their storage class."""
    rows = [
        (name, *(words.dollars(advised(replace(usual(mode), storage_class=name), found).dollars) for mode in Mode))
        for name in CLASSES
    ]
    return _aligned(("storage class", *(mode.value for mode in Mode)), rows, numbers=range(1, 4))


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


def ages(found: Measured) -> str:
    """Dollars a night of 10^8 objects by the share that changes, and by the age within which a kept fact is due."""

    def of(mode: Mode, changed: float, acl: float | None = None, head: float | None = None) -> str:
        night = replace(usual(mode), changed=changed, acl_days=acl, head_days=head)
        return words.dollars(advised(night, found).dollars)

    rows = [
        (words.percent(changed), of(Mode.MIXED, changed), *(of(Mode.INCREMENTAL, changed, *due) for due in DUE))
        for changed in CHANGED
    ]
    columns = ("changed", "mixed", *(f"incremental: acl={acl:.0f}d,head={head:.0f}d" for acl, head in DUE))
    return _aligned(columns, rows, numbers=range(5))


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: range) -> str:
    """Return a table whose columns `numbers` are right-aligned: their numbers are words."""
    head, _, *lines = table(columns, rows).splitlines()
    rule = " | ".join("---:" if at in numbers else "---" for at in range(len(columns)))
    return "\n".join([head, f"| {rule} |", *lines])
