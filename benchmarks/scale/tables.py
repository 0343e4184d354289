"""The tables of docs/scale.md that compare nights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from benchmarks.scale import bill, words
from benchmarks.scale.assumed import BUCKETS, OPTIONS, SIZES, usual
from benchmarks.scale.bill import NIGHTS, simulate, total
from benchmarks.scale.measured import Measured, Mode
from benchmarks.scale.night import Pace, pace
from benchmarks.tables import table

MEMORIES: Final = (128, 512, 1024, 1769, 3008)
MOST_OBJECTS: Final = 10**12
"""Where a search ends."""
DAY: Final = 24 * 3600.0
WIDE: Final = 20
"""`mapConcurrency` that auto is compared with."""
_SERVICES: Final = {
    "LIST requests": (bill.S3_LIST,),
    "ACL and HEAD requests": (bill.S3_CALLS,),
    "S3 Inventory": (bill.S3_INVENTORY,),
    "run folder": (bill.RUN_FOLDER,),
    "Lambda and Step Functions": (bill.LAMBDA, bill.STEP_FUNCTIONS),
}
"""Services of the usual night, by their words in the table."""


def ways(found: Measured) -> str:
    """Time and dollars of a night of each size and mode."""
    rows = []
    for objects in SIZES:
        nights = [simulate(usual(mode, objects), found) for mode in Mode]
        cells = [f"{words.duration(one.course.seconds)}, {words.dollars(one.dollars)}" for one in nights]
        rows.append((words.power(objects), *cells))
    return _aligned(("objects", *Mode), rows)


def machine(found: Measured) -> str:
    """Ranges, invocations and state transitions of a night of each size and mode."""
    rows = []
    for objects in SIZES:
        nights = [usual(mode, objects) for mode in Mode]
        courses = [(one.ranges, pace(one, found)) for one in nights]
        cells = [f"{ranges:,} / {one.invocations:,} / {one.transitions:,}" for ranges, one in courses]
        rows.append((words.power(objects), *cells))
    return _aligned(("objects", *Mode), rows)


def crossings(found: Measured) -> str:
    """The numbers of objects from which on one invocation does not do, or a night takes too long."""
    rows: tuple[tuple[str, int | None, Callable[[Pace], bool]], ...] = (
        ("one invocation does not do from", None, lambda course: course.invocations != 1),
        ("the night takes over a day from", None, lambda course: course.seconds > DAY),
        (f"the same with `mapConcurrency={WIDE}` from", WIDE, lambda course: course.seconds > DAY),
        ("the machine cannot end it from", None, lambda course: course.too_long),
    )

    def reached(mode: Mode, at_once: int | None, is_so: Callable[[Pace], bool], objects: int) -> bool:
        return is_so(pace(replace(usual(mode, objects), concurrency=at_once), found))

    lines = [
        (name, *(words.rounded(first_size(partial(reached, mode, at_once, is_so))) for mode in Mode))
        for name, at_once, is_so in rows
    ]
    return table(("objects", *Mode), lines)


def first_size(is_so: Callable[[int], bool], most: int = MOST_OBJECTS) -> int | None:
    """Return the smallest number of objects from which on something is so, to 1 %; None if it is not so up to `most`.

    is_so: False up to a number of objects, True from it on.
    """
    if not is_so(most):
        return None
    low, high = 0, most
    while high - low > max(1, low // 100):
        middle = (low + high) // 2 if low < 1000 else math.isqrt(low * high)
        low, high = (low, middle) if is_so(middle) else (middle, high)
    return high


def estate(found: Measured) -> str:
    """The live night of many buckets of the same size, with `mapConcurrency` auto and with a larger one."""
    rows = []
    for objects in (10**3, *(size // 100 for size in SIZES[:3])):
        night = replace(usual(Mode.LIVE, objects), buckets=BUCKETS)
        auto, wide = (simulate(replace(night, concurrency=at_once), found) for at_once in (None, WIDE))
        course = auto.course
        times = [words.duration(one.course.seconds) for one in (auto, wide)]
        counts = f"{course.invocations:,}", f"{course.transitions:,}"
        rows.append((f"{objects:,}", *counts, *times, words.dollars(auto.dollars)))
    heads = "objects in each", "invocations", "transitions", "auto", f"`mapConcurrency` {WIDE}", "dollars"
    return _aligned(heads, rows)


def bills(found: Measured) -> str:
    """Dollars of the usual night by service, and of a month."""
    nights = [simulate(usual(mode), found) for mode in Mode]
    rows = [
        (name, *(words.dollars(total(one.terms, services)) for one in nights)) for name, services in _SERVICES.items()
    ]
    rows.append(("**a night**", *(words.dollars(one.dollars) for one in nights)))
    rows.append(("a month", *(words.dollars(one.dollars * NIGHTS) for one in nights)))
    return _aligned(("service", *Mode), rows)


def options(found: Measured) -> str:
    """Dollars that a choice adds to the usual night, or takes from it."""
    rows = []
    for name, change in OPTIONS:
        cells = []
        for mode in Mode:
            more = simulate(change(usual(mode)), found).dollars - simulate(usual(mode), found).dollars
            cells.append(f"{'-' if more < 0 else '+'}{words.dollars(abs(more))}")
        rows.append((name, *cells))
    return _aligned(("if", *Mode), rows)


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose columns but the first are right-aligned: their numbers are words."""
    head, _, *lines = table(columns, rows).splitlines()
    return "\n".join([head, f"| --- |{' ---: |' * (len(columns) - 1)}", *lines])
