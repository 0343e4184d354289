"""The sizes at which one function, or ranges, no longer do for a night."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from benchmarks.scale import words
from benchmarks.scale.assumed import usual
from benchmarks.scale.find import HOUR, first_size, mapped
from benchmarks.scale.measured import Measured
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import Night, Pace, pace
from benchmarks.tables import table

DAY: Final = 24 * 3600.0


def crossings(found: Measured) -> str:
    """Return the table of the numbers of objects from which on a way takes too long."""
    over_ranges = partial(mapped, found=found)
    rows = [
        ("one function takes over an hour from", *_first(found, lambda course: course.seconds > HOUR)),
        ("one function cannot end from", *_first(found, lambda course: course.too_long)),
        ("ranges take over a day from", *_first(found, lambda course: course.seconds > DAY, over_ranges)),
    ]
    return table(("objects", *Mode), rows)


def _first(
    found: Measured, is_so: Callable[[Pace], bool], way: Callable[[Night], Night] = lambda night: night
) -> Iterator[str]:
    """Yield the number of objects of each mode from which on something is so of a night that goes this way."""

    def reached(mode: Mode, objects: int) -> bool:
        return is_so(pace(way(usual(mode, objects)), found))

    for mode in Mode:
        yield words.rounded(first_size(partial(reached, mode)))
