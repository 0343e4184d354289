"""The tables of docs/scale.md that compare nights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.scale import bill, words
from benchmarks.scale.assumed import OPTIONS, usual
from benchmarks.scale.bill import NIGHTS, total
from benchmarks.scale.find import advised
from benchmarks.scale.measured import Measured
from benchmarks.scale.mode import Mode
from benchmarks.tables import table

SIZES: Final = tuple(10**power for power in range(6, 11))
MEMORIES: Final = (128, 512, 1024, 1769, 3008)
_SERVICES: Final = {
    "LIST requests": (bill.S3_LIST,),
    "ACL and HEAD requests": (bill.S3_CALLS,),
    "S3 Inventory": (bill.S3_INVENTORY,),
    "run folder": (bill.RUN_FOLDER,),
    "Lambda and Step Functions": (bill.LAMBDA, bill.STEP_FUNCTIONS),
}
"""Services of the usual night, by their words in the table."""


def ways(found: Measured) -> str:
    """Time and dollars of a night of each size and mode: with one function where that ends within an hour, else with a
    map.
    """
    rows = []
    for objects in SIZES:
        nights = [advised(usual(mode, objects), found) for mode in Mode]
        cells = [f"{words.duration(one.course.seconds)}, {words.dollars(one.dollars)}" for one in nights]
        rows.append((words.power(objects), *cells))
    return _aligned(("objects", *Mode), rows)


def bills(found: Measured) -> str:
    """Dollars of the usual night by service, and of a month."""
    nights = [advised(usual(mode), found) for mode in Mode]
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
            more = advised(change(usual(mode)), found).dollars - advised(usual(mode), found).dollars
            cells.append(f"{'-' if more < 0 else '+'}{words.dollars(abs(more))}")
        rows.append((name, *cells))
    return _aligned(("if", *Mode), rows)


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose columns but the first are right-aligned: their numbers are words."""
    head, _, *lines = table(columns, rows).splitlines()
    return "\n".join([head, f"| --- |{' ---: |' * (len(columns) - 1)}", *lines])
